/**
 * The commands of core, one a file. A file declares its command and imports what it works with only when it runs, so
 * that `holdfast --help` loads none of it. Plugins add theirs with `ctx.command`.
 */
import type { CommandDefinition } from '../../core/host/plugin/command.ts';
import { doctor } from './doctor.ts';
import { freshness } from './freshness.ts';
import { graph } from './graph.ts';
import { logExport } from './log-export.ts';
import { logImport } from './log-import.ts';
import { logList } from './log-list.ts';
import { logPrune } from './log-prune.ts';
import { logShow } from './log-show.ts';
import { logShred } from './log-shred.ts';
import { logTail } from './log-tail.ts';
import { logVerify } from './log-verify.ts';
import { replayAt } from './replay-at.ts';
import { replayDiff } from './replay-diff.ts';
import { replayExplain } from './replay-explain.ts';
import { replayStep } from './replay-step.ts';
import { replayVerify } from './replay-verify.ts';
import { replayWhatIf } from './replay-what-if.ts';
import { start } from './start.ts';
import { status } from './status.ts';

/** In the order of the help. */
export const coreCommands: readonly CommandDefinition[] = [
  start,
  status,
  doctor,
  graph,
  freshness,
  logList,
  logShow,
  logTail,
  logExport,
  logImport,
  logVerify,
  logPrune,
  logShred,
  replayVerify,
  replayAt,
  replayDiff,
  replayStep,
  replayExplain,
  replayWhatIf,
];
