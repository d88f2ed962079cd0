import { listActions } from './actions.ts';
import { listActors, showActor } from './actors.ts';
import { listChanges } from './changes.ts';
import { compare } from './compare.ts';
import type { Endpoint } from './endpoint.ts';
import { listHappened } from './happened.ts';
import { logFacts, session } from './log.ts';
import { showMachine } from './machines.ts';
import { overview } from './overview.ts';
import { listPages, showPage } from './pages.ts';
import { listRecords, recordAtTime, showRecord } from './records.ts';
import { density, listStories, showStory } from './stories.ts';
import { whatIf } from './what-if.ts';

/** What a log answers, wherever it is: also in an exported page, so nothing here may need Node. */
export const QUESTIONS: readonly Endpoint[] = [
  session,
  logFacts,
  listRecords,
  recordAtTime,
  showRecord,
  showMachine,
  listStories,
  showStory,
  density,
  listHappened,
  listActors,
  showActor,
  listChanges,
  overview,
  compare,
  whatIf,
  listPages,
  showPage,
  listActions,
];
