import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { OutcomeUnknown } from '../../../src/app/log/event-store.ts';
import { Code, grpcCaller, type GrpcCaller } from '../../support/grpc/caller.ts';
import {
  callerOf,
  seedCatalogue,
  startTestService,
  textAt,
  type TestService,
} from '../../support/http/service.ts';

const CREATE = '/osac.public.v1.Clusters/Create';
const ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo';

/** What gRPC tells where REST has a status of its own, or asks who calls. */
describe('outcomes over gRPC', () => {
  let service: TestService;
  let alice: GrpcCaller;
  let root: GrpcCaller;
  let nobody: GrpcCaller;
  /** No append to a cluster is answered. */
  let silent = false;

  before(async () => {
    const store = createMemoryEventStore();
    service = await startTestService({
      store: {
        ...store,
        append: (stream, ...rest) => {
          if (silent && stream.startsWith('cluster-')) throw new OutcomeUnknown(stream);
          return store.append(stream, ...rest);
        },
      },
      // As a service does that has issuers of its own.
      grpc: { openReflection: false },
    });
    const token = await service.token({ user: 'root', admin: true });
    await seedCatalogue(callerOf(service, token));
    root = grpcCaller(service.grpcAddress, token);
    alice = grpcCaller(service.grpcAddress, await service.token({ user: 'alice', tenants: ['t1'] }));
    nobody = grpcCaller(service.grpcAddress);
  });
  after(async () => {
    for (const caller of [alice, root, nobody]) caller.close();
    await service.close();
  });

  const order = (name: string) => ({
    object: { metadata: { name }, spec: { template: { id: 'osac.templates.small' } } },
  });
  const infoOf = (reply: Awaited<ReturnType<GrpcCaller['call']>>) =>
    reply.details.find((detail) => textAt(detail, '@type') === ERROR_INFO);

  it('an outcome that nobody knows is UNKNOWN with the command id; the same key settles it', async () => {
    const headers = { 'idempotency-key': 'lost' };
    silent = true;
    const lost = await alice.call(CREATE, order('lost'), { headers });
    silent = false;
    expect(lost.code, lost.message).to.equal(Code.UNKNOWN);
    expect(lost.metadata('x-ledger-reason')).to.equal('OUTCOME_UNKNOWN');
    expect(infoOf(lost)).to.include({ reason: 'OUTCOME_UNKNOWN' });
    expect(textAt(infoOf(lost), 'metadata', 'command_id')).to.match(/^[0-9a-f-]{36}$/);
    expect(lost.details.map((detail) => detail['@type'])).to.include(
      'type.googleapis.com/google.rpc.RetryInfo',
    );
    const settled = await alice.call(CREATE, order('lost'), { headers });
    expect(settled.code, settled.message).to.equal(Code.OK);
    expect((await alice.call(CREATE, order('lost'), { headers })).json).to.deep.equal(settled.json);
  });

  it('one of a call without a key is settled by its command id', async () => {
    silent = true;
    const lost = await alice.call(CREATE, order('keyless'));
    silent = false;
    const id = textAt(infoOf(lost), 'metadata', 'command_id');
    expect([lost.code, lost.metadata('x-ledger-command-id')]).to.deep.equal([Code.UNKNOWN, id]);
    const headers = { 'x-ledger-command-id': id };
    const settled = await alice.call(CREATE, order('keyless'), { headers });
    expect(settled.code, settled.message).to.equal(Code.OK);
    expect((await alice.call(CREATE, order('keyless'), { headers })).json).to.deep.equal(settled.json);
  });

  for (const version of ['v1', 'v1alpha'])
    it(`reflection ${version} is for admins alone where issuers are set`, async () => {
      const asked = { list_services: '' };
      const refused = async (caller: GrpcCaller): Promise<unknown> =>
        caller.reflect(version, asked).then(
          () => 'answered',
          ({ code }: { code: unknown }) => code,
        );
      expect(await refused(nobody)).to.equal(Code.UNAUTHENTICATED);
      expect(await refused(alice)).to.equal(Code.PERMISSION_DENIED);
      expect(await root.reflect(version, asked)).to.have.nested.property('list_services_response.service');
    });
});
