import { expect } from 'chai';
import { files } from '../../../src/gen/osac/files.ts';
import { Code, grpcCaller, type GrpcCaller } from '../../support/grpc-caller.ts';
import { startTestService, type TestService } from '../../support/http-service.ts';

describe('methods over gRPC', () => {
  let service: TestService;
  let nobody: GrpcCaller;
  before(async () => {
    service = await startTestService();
    nobody = grpcCaller(service.grpcAddress);
  });
  after(async () => {
    nobody.close();
    await service.close();
  });

  const declared = files.flatMap(({ services }) =>
    services.flatMap(({ typeName, methods }) => methods.map(({ name }) => `/${typeName}/${name}`)),
  );

  it(`are all ${declared.length} that the descriptors declare, of ${files.flatMap((file) => file.services).length} services`, async () => {
    const missing: string[] = [];
    for (const path of declared)
      if ((await nobody.call(path)).code === Code.UNIMPLEMENTED) missing.push(path);
    expect(missing).to.deep.equal([]);
    expect(declared.length).to.be.greaterThan(180);
  });
});
