import { act, listActions } from './actions.ts';
import { listActors, showActor } from './actors.ts';
import { compare } from './compare.ts';
import type { Endpoint } from './endpoint.ts';
import { logFacts, session } from './log.ts';
import { showMachine } from './machines.ts';
import { overview } from './overview.ts';
import { listPages, showPage } from './pages.ts';
import { listRecords, recordAtTime, showRecord } from './records.ts';
import { density, listStories, showStory } from './stories.ts';
import { whatIf } from './what-if.ts';

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
  overview,
  compare,
  whatIf,
  listPages,
  showPage,
  listActions,
  act,
];
