import type { HistoryEntry } from '../../../core/contracts/config-store.ts';
import type { ConsolePage, PageMoment, PageSection } from '../../../core/contracts/console.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { withoutControlFields } from '../config/network-config.ts';
import type { EmbeddedRouter } from './embedded-router.ts';

/** Versions that are listed. */
const MOST = 200;
/** A larger config takes too long to compare beside other work; characters. */
const LARGEST = 400_000;

/**
 * The versions of the config that the router's store keeps, and what one changed of the one before it, with the values: secrets as
 * fingerprints. They are in no log, so that only a running instance has them.
 */
export function versionsPage({
  services,
  router,
}: {
  readonly services: Pick<Services, 'vault'>;
  readonly router: Pick<EmbeddedRouter, 'history' | 'version'>;
}): ConsolePage {
  return {
    name: 'router-versions',
    title: 'Config versions',
    isCostly: true,
    inputs: [
      { name: 'version', title: 'Version', kind: 'text', example: 'its ncid; the newest unless filled in' },
      {
        name: 'against',
        title: 'Against',
        kind: 'text',
        example: 'its ncid; the one before unless filled in',
      },
    ],
    data: async (moment) => {
      const entries = (await router.history(MOST)).filter(({ score }) => score * 1_000 <= moment.time);
      const { version, against } = moment.inputs;
      const chosen =
        version === undefined ? entries[0] : entries.find(({ ncid }) => ncid.startsWith(version));
      const place = chosen ? entries.indexOf(chosen) : -1;
      const other =
        against === undefined ? entries[place + 1] : entries.find(({ ncid }) => ncid.startsWith(against));
      return [
        table(entries, moment),
        await difference(
          chosen,
          other,
          async (entry) => (await router.version(entry.ncid))?.body,
          (value) => services.vault.fingerprint(value),
        ),
      ];
    },
  };
}

function table(entries: readonly HistoryEntry[], { isNow }: PageMoment): PageSection {
  const columns = [
    { name: 'at', title: 'When', format: 'time' },
    { name: 'op', title: 'What' },
    { name: 'who', title: 'Who' },
    { name: 'changed', title: 'Changed' },
    { name: 'ncid', title: 'ncid' },
  ] as const;
  const rows = entries.map(({ score, ncid, op, who, changed }) => ({
    page: { name: 'router-versions', title: 'its changes', inputs: { version: ncid } },
    cells: {
      at: score * 1_000,
      op: op === 'seed' ? 'there before the first write' : op,
      who,
      changed: changed.join(', '),
      ncid,
    },
  }));
  return {
    kind: 'table',
    title: isNow ? 'Versions' : 'Versions that were there, and are kept',
    columns,
    rows,
  };
}

async function difference(
  entry: HistoryEntry | undefined,
  before: HistoryEntry | undefined,
  bodyOf: (entry: HistoryEntry) => Promise<string | undefined>,
  fingerprint: (value: unknown) => string,
): Promise<PageSection> {
  const say = (text: string): PageSection => ({ kind: 'text', title: 'Changes', text });
  if (!entry) return say('There is no such version.');
  if (!before) return say(`Nothing is kept that ${entry.ncid} can be compared with.`);
  const [newer, older] = await Promise.all([bodyOf(entry), bodyOf(before)]);
  if (newer === undefined || older === undefined) return say('One of the two has left the history just now.');
  if (newer.length > LARGEST || older.length > LARGEST)
    return say(`They are large: \`holdfast router diff ${before.ncid} ${entry.ncid}\` compares them.`);
  const { differenceOf } = await import('../commands/leaves.ts');
  const [from, to] = [older, newer].map((body) => withoutControlFields(JSON.parse(body)));
  const changes = differenceOf(from ?? {}, to ?? {}, (value) => fingerprint(value));
  return {
    kind: 'changes',
    title: `From ${before.ncid} to ${entry.ncid}`,
    changes: changes.map((change) => ({
      path: change.path,
      ...(change.before !== undefined && { from: shownValue(change.before) }),
      ...(change.after !== undefined && { to: shownValue(change.after) }),
    })),
  };
}

/** A value as `differenceOf` writes it: JSON, or the fingerprint of a secret. */
const shownValue = (text: string): unknown => (text.startsWith('secret ') ? text : JSON.parse(text));
