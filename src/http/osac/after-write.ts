import type { JsonObject } from '../../domain/json.ts';
import { objectAt, stringAt } from '../../domain/json-tools.ts';
import type { Answer, Call } from './call.ts';
import type { KindService } from './service-table.ts';

/** What has to be done once an object is written, also when the write was a replay. Position of its last event. */
export type AfterWrite = (id: string) => Promise<string | undefined>;

/** The same service, with more to do after each write; a dry run writes nothing. */
export const withAfterWrite = (service: KindService, after: AfterWrite | undefined): KindService => {
  if (after === undefined) return service;
  const run = async <M>(call: Call<M>, answer: Answer, id: string): Promise<Answer> => {
    if (call.metadata.dryRun === true) return answer;
    const position = await after(id);
    return position === undefined ? answer : { ...answer, position };
  };
  return {
    ...service,
    create: async (call) => {
      const answer = await service.create(call);
      const reply = JSON.parse(String(answer.body)) as JsonObject;
      return run(call, answer, stringAt(reply, 'id') || stringAt(objectAt(reply, 'object'), 'id'));
    },
    update: async (call) => run(call, await service.update(call), call.message.id),
    remove: async (call) => run(call, await service.remove(call), call.message.id),
  };
};
