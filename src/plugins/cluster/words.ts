/** Describes records of several hosts for `holdfast log`. It imports no code of the running plugin, so that commands load it quickly. */
import {
  DEFAULT_WORDS,
  HIDDEN,
  problemEvents,
  type RecordOf,
  type RecordWords,
} from '../../core/kernel/actors/definition.ts';
import type { host } from '../../machines/cluster/host.ts';
import type { singleton } from '../../machines/cluster/singleton.ts';

export const words: RecordWords = {
  'cluster.singleton': describeSingletonRecord,
  'cluster.host': describeHostRecord,
};

export function describeSingletonRecord({ event }: RecordOf<typeof singleton>): string | undefined {
  switch (event.type) {
    case 'init':
      return HIDDEN;
    case 'STARTED':
      return 'this host starts as a follower';
    case 'FOLLOWED':
      return `runs on ${event.holder}`;
    case 'TAKING':
      return event.from === undefined ? 'this host takes it' : `this host takes it over from ${event.from}`;
    case 'BEGUN':
      return event.fencedAt === undefined
        ? 'runs here'
        : `runs here, from record ${event.fencedAt} of the host before`;
    case 'TOOK_OVER':
      return `what counts ends with ${event.takeovers.map(({ host, seq }) => `record ${seq} of ${host}`).join(', ')}`;
    case 'TAKEOVER_NOTED':
      return event.seq === undefined
        ? `${event.host} has noted: its records since the takeover do not count for this work`
        : `${event.host} has noted: its records after ${event.seq} do not count for this work`;
    case 'BEGIN_FAILED':
      return `could not begin here: ${event.reason}`;
    case 'ENDING':
      return `ends here: ${event.reason}`;
    case 'ENDED':
      return 'has ended here';
    case 'MOVE_REQUESTED':
      return `${event.by} moves it to ${event.to ?? 'another host'}${why(event)}`;
    case 'BRANCH_EXPORTED':
      return `${event.by} exported the orphaned branch ${event.number}${why(event)}`;
    case 'ORPHANED':
      return `${event.count} records, ${event.from} to ${event.to}, do not count: another host had it`;
    default:
      return DEFAULT_WORDS;
  }
}
describeSingletonRecord.problem = problemEvents('BEGIN_FAILED', 'ORPHANED');

const why = ({ reason }: { readonly reason?: string | undefined }): string =>
  reason === undefined ? '' : `: ${reason}`;

export function describeHostRecord({ event }: RecordOf<typeof host>): string | undefined {
  switch (event.type) {
    case 'init':
      return HIDDEN;
    case 'HEARD':
      return `is heard, version ${event.version}`;
    case 'LOST':
      return `has been silent for ${Math.round(event.silentMs / 1_000)} s`;
    case 'LEFT':
      return 'stops';
    case 'FORGOTTEN':
      return `is not expected any more, says ${event.by}${why(event)}`;
    case 'DRAINED':
      return `${event.by} drained it${why(event)}`;
    case 'UNDRAINED':
      return `${event.by} lets it hold work again${why(event)}`;
    case 'ADOPTED':
      return `${event.by} had this machine go on as it, from ${event.records} records of its stream${why(event)}`;
    case 'VERSION_REFUSED':
      return `runs version ${event.version}, this host ${event.ownVersion}: this host takes nothing over`;
    case 'STREAM_REPLACED':
      return `its stream was replaced by incarnation ${event.to}, filled from its log: ${event.reason}`;
    case 'MIRROR_BEHIND':
      return `${event.records} records are not on its stream yet, the oldest for ${Math.round(event.ms / 1_000)} s`;
    case 'MIRROR_CAUGHT_UP':
      return 'its stream has every record';
    case 'ISOLATED':
      return event.isBehind
        ? 'has not read yet what the other hosts said'
        : 'reaches no quorum of the NATS servers';
    case 'CONNECTED':
      return 'reaches the NATS servers again';
    default:
      return DEFAULT_WORDS;
  }
}
describeHostRecord.problem = problemEvents(
  'LOST',
  'VERSION_REFUSED',
  'STREAM_REPLACED',
  'MIRROR_BEHIND',
  'ISOLATED',
);
