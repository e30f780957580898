module fulfillment-ledger/osac-command-line

go 1.26

require (
	google.golang.org/grpc v1.79.3
	google.golang.org/protobuf v1.36.12-0.20260120151049-f2248ac996af
)
