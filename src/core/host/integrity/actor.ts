import { defineTopic } from '../../../bus/topic.ts';
import { defineActor, routeOf } from '../../kernel/actors/definition.ts';
import { parseActorRef } from '../../kernel/ids.ts';
import { dataCheckResultSchema } from './findings.ts';
import { dataCheck } from './machine.ts';
import { DATA_CHECK, describeDataCheck } from './records.ts';

const { type, key } = parseActorRef(DATA_CHECK);

export const dataCheckActor = defineActor({
  type,
  machine: dataCheck,
  version: 1,
  describe: describeDataCheck,
});

/** The whole data folder was read. */
export const dataChecked = defineTopic(
  'data.checked',
  dataCheckResultSchema,
  'Everything in the data folder was read and compared with its checksums.',
);

export const dataCheckedRoute = routeOf(dataChecked, dataCheckActor, ({ payload }) => [
  { key, event: { type: 'CHECKED' as const, ...payload } },
]);
