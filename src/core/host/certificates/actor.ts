import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import { defineActor, routeOf } from '../../kernel/actors/definition.ts';
import { describeCertificate } from '../lifecycle/records.ts';
import { certificate } from './machine.ts';

/** One actor a surface; its key is the surface's name. */
export const certificateActor = defineActor({
  type: 'runtime.certificate',
  machine: certificate,
  version: 1,
  describe: describeCertificate,
});

/** A surface's certificate is another thing to rely upon than it was. */
export const certificateJudged = defineTopic(
  'certificate.judged',
  z.object({ surface: z.string(), state: z.enum(['ok', 'warn', 'fail']), text: z.string() }),
  'The certificate of a surface ends soon, cannot be used, or is good again.',
);

export const certificateJudgedRoute = routeOf(certificateJudged, certificateActor, ({ payload }) => [
  { key: payload.surface, event: { type: 'JUDGED' as const, ...payload } },
]);
