/** What the backup commands print. */
import { sizeText } from '../../../core/host/size.ts';
import type { Terminal } from '../../../core/host/terminal.ts';
import { plainText, table } from '../../../core/host/terminal.ts';
import type {
  ClusterVolumeStatus,
  KindStatus,
  ListAnswer,
  PruneAnswer,
  SeedAnswer,
  SnapshotAnswer,
  StatusAnswer,
} from './answers.ts';

/** ISO 8601 to the second. */
const second = (time: string): string => time.slice(0, 19).concat('Z');

export function snapshotLines({
  name,
  size,
  count,
  seeds,
  content,
  sha256,
  unread,
  deleted,
}: SnapshotAnswer): string[] {
  const recorded =
    count === undefined || !content
      ? ['its content was not recorded, because no instance runs here']
      : [
          `${count} points recorded, each with id, vector and payload; ${seeds.length} seeds among them`,
          ...(content.written > 0
            ? [`${content.written} were written meanwhile, and are recorded with both states`]
            : []),
          ...(content.digest === undefined ? [] : [`digest of the points ${content.digest}`]),
          sha256 === undefined ? `sha256 of the file unknown: ${unread}` : `sha256 of the file ${sha256}`,
        ];
  return [
    plainText(`${name} (${sizeText(size)})`),
    ...recorded.map((text) => plainText(`  ${text}`)),
    ...(deleted.length > 0 ? [plainText(`pruned ${deleted.join(', ')}`)] : []),
  ];
}

export function listLines({ backups, collection }: ListAnswer, terminal: Terminal): string[] {
  if (backups.length === 0) {
    return [plainText(`There is no backup of ${collection} yet: run holdfast backup snapshot`)];
  }
  const cells = backups.map(({ kind, at, size, recorded, seenAt, count, name }) => [
    kind,
    second(at),
    size === 0 ? '-' : sizeText(size),
    String(count ?? '-'),
    recorded ? (seenAt === undefined ? 'when made' : `seen ${second(seenAt)}`) : '-',
    name,
  ]);
  return table([['KIND', 'MADE', 'SIZE', 'POINTS', 'RECORDED', 'NAME'], ...cells], terminal).flat();
}

export function pruneLines({ dryRun, deleted }: PruneAnswer): string[] {
  const names = Object.values(deleted).flat();
  if (names.length === 0) return ['Nothing is beyond the retention.'];
  return names.map((name) => plainText(`${dryRun ? 'would delete' : 'deleted'} ${name}`));
}

export function seedLines({ seeds, collection, count }: SeedAnswer): string[] {
  return [plainText(`${seeds.length} seeds are in ${collection}, which holds ${count} points`)];
}

export function statusLines({ snapshot, volume, clusterVolume, seeds }: StatusAnswer): string[] {
  return [
    ...(snapshot ? kindLines('snapshot', snapshot) : []),
    ...(volume ? kindLines('volume', volume) : []),
    ...(clusterVolume ? clusterLines(clusterVolume) : []),
    `seeds     ${seeds === 0 ? 'none: run holdfast backup seed' : seeds}`,
  ].map(plainText);
}

function clusterLines({
  schedule,
  newest,
  recorded,
  stale,
  unknown,
  findings,
}: ClusterVolumeStatus): string[] {
  const text = newest ? `${newest.name}, ${second(newest.at)}, ${recorded} recorded` : `unknown: ${unknown}`;
  const wrong = [...(stale ? ['stale'] : []), ...findings];
  return [
    `volume    ${text}`,
    `          made by ${schedule} of the cluster${wrong.length > 0 ? `; ${wrong.join('; ')}` : ''}`,
  ];
}

function kindLines(
  kind: string,
  { lastGood, lastDue, kept, stale, fault, state, findings }: KindStatus,
): string[] {
  const newest = lastGood
    ? `${lastGood.name}, ${second(lastGood.at)}, ${sizeText(lastGood.size)}, ${kept} kept`
    : 'no good one yet';
  const wrong = [...(stale ? ['stale'] : []), ...(fault === undefined ? [] : [fault]), ...findings];
  return [
    `${kind.padEnd(9)} ${newest}`,
    `          ${state}; was due ${second(lastDue)}${wrong.length > 0 ? `; ${wrong.join('; ')}` : ''}`,
  ];
}
