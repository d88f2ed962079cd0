import { HoldfastError } from '../../core/errors/index.ts';
import { lockedBy } from '../../core/log/index.ts';
import { countSecrets, PAGE, redact } from '../../core/logging/index.ts';
import type { PluginContext } from '../../core/plugin/index.ts';
import { readRuntimeFile } from '../../core/runtime/index.ts';
import { openVault } from '../../core/secrets/index.ts';
import { StoreReader } from './store/reader.ts';

interface Entry {
  readonly score: number;
  readonly ncid: string;
  readonly op: string;
  readonly who: string;
  readonly changed: readonly string[];
}

/** `holdfast router get` and `router history`: from the running instance, else read-only from its store. */
export function registerCommands(context: PluginContext, token: () => string | undefined): void {
  context.command({
    name: 'router get',
    summary: 'Shows the active network config, secrets redacted',
    example: 'holdfast router get --json | jq .interface.vlan',
    async run(_args, _flags, { dataDir, json, print, note, signal }) {
      const running = urlOf(dataDir);
      const config = running
        ? await get(`${running}/v1/config/active`, token(), signal)
        : offline(dataDir, (reader) => JSON.parse(reader.active()?.body ?? '{}'));
      const shown = redact(config, PAGE);
      print(json ? JSON.stringify(shown) : JSON.stringify(shown, null, 2));
      const from = running ?? 'the store, for nothing runs here';
      if (!json) note(`${countSecrets(config).count} secrets redacted; read from ${from}`);
    },
  });

  context.command({
    name: 'router history',
    summary: 'Lists the accepted config writes, newest first',
    example: 'holdfast router history --limit 5',
    flags: [{ flags: '--limit <n>', summary: 'how many entries', default: '20' }],
    async run(_args, flags, { dataDir, json, print, signal }) {
      const limit = Number(flags.limit);
      if (!Number.isInteger(limit) || limit < 1) {
        throw new HoldfastError('HF_CLI_USAGE', {
          reason: '--limit takes a number from 1.',
          command: 'router history',
        });
      }
      const running = urlOf(dataDir);
      const entries = running
        ? (
            (await get(`${running}/v1/config/history?limit=${limit}`, token(), signal)) as {
              entries: Entry[];
            }
          ).entries
        : offline(dataDir, (reader) => reader.history(limit).map(({ body: _, ...entry }): Entry => entry));
      if (json) return print(JSON.stringify({ entries }));
      for (const { score, ncid, op, who, changed } of entries) {
        const at = new Date(score * 1000).toISOString().slice(0, 19);
        print(`${at}  ${ncid}  ${op.padEnd(6)}  ${who}  ${changed.join(', ') || '(nothing changed)'}`);
      }
      if (entries.length === 0) print('no writes yet');
    },
  });
}

/** Where the router of the instance on this data folder listens; undefined when none runs. */
function urlOf(dataDir: string): string | undefined {
  if (lockedBy(dataDir) === undefined) return undefined;
  return readRuntimeFile(dataDir)?.surfaces.router?.url;
}

async function get(url: string, token: string | undefined, signal: AbortSignal): Promise<unknown> {
  try {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    // Node's own fetch is undici, and loads in a tenth of the package's time.
    const answer = await fetch(url, { headers, signal });
    if (answer.status === 200) return await answer.json();
    throw new HoldfastError('HF_ROUTER_UNREACHABLE', { reason: `it answered ${answer.status}` });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof HoldfastError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new HoldfastError('HF_ROUTER_UNREACHABLE', { reason }, { cause: error });
  }
}

function offline<T>(dataDir: string, read: (reader: StoreReader) => T): T {
  const reader = new StoreReader(dataDir, () => openVault(dataDir));
  try {
    return read(reader);
  } finally {
    reader.close();
  }
}
