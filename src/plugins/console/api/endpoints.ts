import { listActors, showActor } from './actors.ts';
import type { Endpoint } from './endpoint.ts';
import { logFacts, session } from './log.ts';
import { showMachine } from './machines.ts';
import { listRecords, recordAtTime, showRecord } from './records.ts';
import { density, listStories, showStory } from './stories.ts';

/** All paths of the API that answer with JSON; `paths.ts` names them for the surface. */
export const ENDPOINTS: readonly Endpoint[] = [
  session,
  logFacts,
  listRecords,
  recordAtTime,
  showRecord,
  showMachine,
  listStories,
  showStory,
  density,
  listActors,
  showActor,
];
