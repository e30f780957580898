import { expect } from 'chai';
import { Code, grpcCaller, type GrpcReply } from '../../support/grpc-caller.ts';
import { createStack, E2E_STORE, type Stack } from '../../support/e2e-stack.ts';

const CREATE = '/osac.public.v1.Clusters/Create';
const CALLS = 1_000;
/** Calls that have to be answered before the service is killed. */
const ANSWERED = 200;

describe('kill -9 in the middle of calls over gRPC', function () {
  this.timeout(300_000);
  let stack: Stack;
  before(async () => {
    stack = await createStack(E2E_STORE, { LEDGER_ROLES: 'api', LEDGER_RATE_LIMIT_TENANT: '0' });
    await stack.start();
  });
  after(() => stack.dispose());

  it('loses no acknowledged creation and makes none twice', async () => {
    const token = await stack.token({ tenant: 'acme', user: 'alice' });
    const createAll = async (enough: (answered: number) => void): Promise<readonly GrpcReply[]> => {
      const caller = grpcCaller(stack.service().grpc ?? '', token);
      let answered = 0;
      const replies = await Promise.all(
        Array.from({ length: CALLS }, async (_, i) => {
          const spec = { template: { id: 'osac.templates.ocp_small' } };
          const request = { object: { metadata: { name: `killed-${i}` }, spec } };
          const reply = await caller.call(CREATE, request, { headers: { 'idempotency-key': `killed-${i}` } });
          if (reply.code === Code.OK) enough((answered += 1));
          return reply;
        }),
      );
      caller.close();
      return replies;
    };
    const idOf = (reply: GrpcReply | undefined): unknown => reply?.json['object']?.['id'];
    const first = await createAll((answered) => {
      if (answered === ANSWERED) void stack.stop('SIGKILL');
    });
    const acknowledged = first.filter(({ code }) => code === Code.OK);
    expect(acknowledged.length).to.be.within(ANSWERED, CALLS - 1);
    await stack.stop('SIGKILL');
    await stack.start();
    const second = await createAll(() => undefined);
    expect(second.filter(({ code }) => code !== Code.OK).map(({ message }) => message)).to.deep.equal([]);
    for (const [i, reply] of first.entries())
      if (reply.code === Code.OK) expect(idOf(second[i])).to.equal(idOf(reply));
    const caller = grpcCaller(stack.service().grpc ?? '', token);
    const list = await caller.call('/osac.public.v1.Clusters/List', { limit: 1 });
    caller.close();
    expect(list.json['total']).to.equal(CALLS);
  });
});
