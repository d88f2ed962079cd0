import { z } from 'zod';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import type { KeyAdmin } from './admin.ts';
import type { KeyDirectory } from './directory.ts';
import { keyFields, keyInfo, pageOfKeys } from './view.ts';

/** What `holdfast gateway keys` posts to, before the verb. */
export const KEYS_PATH = '/gateway/keys';

/** Each verb checks its own fields. */
const anything = z.record(z.string(), z.unknown());

/** What the control routes stand on; there once the plugin has started. */
export interface KeyControlParts {
  readonly keys: KeyDirectory;
  readonly admin: KeyAdmin;
}

type Handler = (
  body: Readonly<Record<string, unknown>>,
  parts: KeyControlParts,
  correlation: string,
) => Promise<unknown>;

/** The commands name a key by id or alias, or bring its value from a file. */
function named({ name, ...rest }: Readonly<Record<string, unknown>>, admin: KeyAdmin): object {
  return typeof name === 'string' ? { ...rest, key: admin.idOf(name) } : rest;
}

const handlers: Readonly<Record<string, Handler>> = {
  async mint(body, { admin }, correlation) {
    const { value, view } = await admin.generate(body, correlation);
    return { key: value, ...keyFields(view) };
  },
  async update(body, { admin }, correlation) {
    return keyFields(await admin.update(named(body, admin), correlation));
  },
  async revoke(body, { admin }, correlation) {
    return { deleted_keys: await admin.revoke(named(body, admin), correlation) };
  },
  async rotate(body, { admin }, correlation) {
    const { value, view } = await admin.rotate(named(body, admin), correlation);
    return { key: value, ...keyFields(view) };
  },
  async info(body, { admin }) {
    const { key } = named(body, admin) as { key?: unknown };
    return keyInfo(admin.find(String(key)), Date.now());
  },
  async list(body, { keys }) {
    const { rows, ...page } = pageOfKeys(body, keys);
    return { keys: rows.map((key) => keyInfo(key, Date.now())), ...page };
  },
};

/**
 * Registers what the commands of keys need of the running instance: its user is its operator, and needs no master key.
 */
export function registerKeyControl(context: PluginContext, parts: () => KeyControlParts): void {
  context.control((surface) => {
    for (const [verb, handle] of Object.entries(handlers)) {
      serveOperation(surface, `${KEYS_PATH}/${verb}`, anything, (body, { correlation }) =>
        handle(body, parts(), correlation),
      );
    }
  });
}
