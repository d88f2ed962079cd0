import { existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { HostError } from '../../core/host/errors/host-error.ts';
import { runSteps } from '../../core/host/history/pace.ts';
import type { CommandContext, CommandRun } from '../../core/host/plugin/command.ts';
import { counted, jsonText, timestamp } from '../../core/host/terminal.ts';
import { witnessPath } from '../../core/host/witness/settings.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import type { Anchor } from '../../core/kernel/log/head.ts';
import type { IntegrityReport } from '../../core/kernel/log/integrity.ts';
import { integritySteps } from '../../core/kernel/log/integrity.ts';
import { isPublicKey } from '../../core/kernel/log/signing.ts';
import type { SqliteReader } from '../../core/kernel/log/sqlite-reader.ts';
import { notedTrust, type Trust } from '../../core/kernel/log/trust.ts';
import {
  compareWithWitness,
  readWitness,
  type WitnessReport,
} from '../../core/kernel/log/witnessed-heads.ts';
import { allSources } from './archived.ts';
import { recordProgress } from './progress.ts';
import { sourcesOf, withLog } from './source.ts';
import { type Verified, verifyParts } from './verify-parts.ts';

/** `holdfast log verify`: checks that no record was changed and none is missing (C9). */
export const verifyLog: CommandRun = async (sources, flags, context) => {
  const { json, print, note, terminal, signal } = context;
  if (flags.host !== undefined) {
    const { verifyStored, withHosts } = await import('./hosts.ts');
    return withHosts(flags, sources, 'log verify', context, (logs) => verifyStored(logs, context));
  }
  const places = sources.length > 0 ? sourcesOf(sources, context) : allSources(context.dataDir);
  const trust = await trustIn(places.at(-1) ?? '', flags);
  const witness = await witnessOf(sources, flags.witness, context);
  const check = async (log: SqliteReader, against: Trust, isLast = true): Promise<Verified> => {
    const steps = integritySteps(log, against);
    const report = await runSteps(steps, context.signal, recordProgress('Checking', log, context));
    if (witness === undefined) return { report };
    const heads = (await readWitness(witness)).filter(({ seq }) => isLast || seq <= report.last);
    return { report, witnessed: compareWithWitness(log, heads, trust.key, witness) };
  };
  const { report, witnessed } =
    sources.length > 0
      ? await withLog(places, (log) => check(log, trust), signal)
      : await verifyParts(places, trust, check, signal);
  if (json) return print(jsonText({ ok: true, ...report, ...(witnessed && { witness: witnessed }) }, 2));
  const { first, last, records, checkpoints, partial, head, signed, missing = [] } = report;
  const lost = missing.map(
    ({ from, to, reason }) => `Records ${from} to ${to} are missing since a repair: ${reason}.`,
  );
  print(
    lost.length === 0
      ? terminal.paint('green', 'No record was changed, and none is missing.')
      : terminal.paint(
          'yellow',
          'No record was changed, and none is missing but those that a repair could not save.',
        ),
  );
  for (const line of lost) print(line);
  print(`${records} records, ${first} to ${last}; ${checkpoints} checkpoints of saved states match`);
  if (partial) print('The log holds only some actors, so missing records between them cannot be detected.');
  if (signed) print(signedLine(signed, last));
  if (signed && trust.key === undefined)
    note('Nothing here confirms that key: name the key that you expect with --public-key.');
  if (witnessed) print(witnessLine(witnessed, witness));
  if (head) {
    print(`Head: ${head}`);
    print(
      'Keep the head elsewhere: with --anchor, a later check finds records that were cut off or rewritten.',
    );
  }
};

/** The file of `--witness`; for the data folder itself the one that the configuration names. */
async function witnessOf(
  sources: readonly string[],
  given: unknown,
  { config, note }: CommandContext,
): Promise<string | undefined> {
  if (given !== undefined) return resolve(String(given));
  if (sources.length > 0) return undefined;
  try {
    const { witness } = await config();
    if (!witness) return undefined;
    const place = witnessPath(witness);
    if (place !== undefined && existsSync(place)) return place;
    note('The configured witness cannot be read from here: name a file of its heads with --witness.');
  } catch (error) {
    if (!isCoded(error)) throw error; // without a configuration there is no witness to compare with
  }
  return undefined;
}

function witnessLine({ matching, archived, newest }: WitnessReport, file = ''): string {
  const upTo = newest ? ` up to record ${newest.seq}, which it got at ${timestamp(newest.at)}` : '';
  const rest =
    archived > 0
      ? `; ${counted(archived, 'head of archived records was', 'heads of archived records were')} not compared`
      : '';
  return `Witness: ${counted(matching, 'head', 'heads')} in ${file} ${matching === 1 ? 'matches' : 'match'}${upTo}${rest}`;
}

/** What the log is checked against: the key and the noted head of its last part, or the key that the user expects. */
async function trustIn(place: string, flags: Readonly<Record<string, unknown>>): Promise<Trust> {
  const anchor = typeof flags.anchor === 'string' ? anchorOf(flags.anchor) : undefined;
  const isFile = statSync(place, { throwIfNoEntry: false })?.isFile() === true;
  const noted = isFile ? {} : notedTrust(place);
  const expected = flags.publicKey;
  if (expected === undefined) return { ...noted, anchor };
  if (typeof expected === 'string' && isPublicKey(expected))
    return { ...noted, anchor, key: expected, whole: isFile || noted.key !== expected };
  const reason = '--public-key takes a key as log verify prints it: ed25519: and 43 characters.';
  throw new HostError('HF_CLI_USAGE', { reason, command: 'log verify' });
}

function signedLine({ key, upTo, signatures }: NonNullable<IntegrityReport['signed']>, last: number): string {
  const rest = last > upTo ? `; the ${last - upTo} since are not signed yet` : '';
  return `Signed by ${key} up to record ${upTo} (${signatures} signatures)${rest}`;
}

/** @throws HF_CLI_USAGE */
function anchorOf(text: string): Anchor {
  const [, seq, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (seq !== undefined && hash !== undefined) return { seq: Number(seq), hash };
  const reason = '--anchor takes a head as log verify prints it: a record number, a colon and 64 hex digits.';
  throw new HostError('HF_CLI_USAGE', { reason, command: 'log verify' });
}
