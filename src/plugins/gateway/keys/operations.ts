import { z } from 'zod';
import type { HttpSurface } from '../../../core/host/http/contract.ts';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import type { ChangeOrigin, KeyAdmin } from './admin.ts';
import { label } from './request.ts';
import { keyFields, keyInfo, pageOfKeys } from './view.ts';
import type { KeyDirectory } from './virtual-keys.ts';

/** Path of the operations of `holdfast gateway keys`, before the verb. */
export const KEYS_PATH = '/gateway/keys';

/** Each verb checks its own fields. */
const anything = z.record(z.string(), z.unknown());

/** What the operations use. */
interface OperationServices {
  readonly services: Pick<Services, 'clock'>;
  readonly keys: KeyDirectory;
  readonly admin: KeyAdmin;
}

type Handler = (
  body: Readonly<Record<string, unknown>>,
  gateway: OperationServices,
  origin: ChangeOrigin,
) => Promise<unknown>;

/** Commands name a key by id or alias, or send its value. */
function withKey(
  { name, ...rest }: Readonly<Record<string, unknown>>,
  admin: KeyAdmin,
): Record<string, unknown> {
  return typeof name === 'string' ? { ...rest, key: admin.idOf(name) } : rest;
}

const handlers: Readonly<Record<string, Handler>> = {
  async mint(body, { admin }, origin) {
    const { value, view } = await admin.generate(body, origin);
    return { key: value, ...keyFields(view) };
  },
  async update(body, { admin }, origin) {
    return keyFields(await admin.update(withKey(body, admin), origin));
  },
  async revoke(body, { admin }, origin) {
    return { deleted_keys: await admin.revoke(withKey(body, admin), origin) };
  },
  async rotate(body, { admin }, origin) {
    const { value, view } = await admin.rotate(withKey(body, admin), origin);
    return { key: value, ...keyFields(view) };
  },
  async info(body, { services, admin }) {
    const { key } = withKey(body, admin);
    return keyInfo(admin.find(String(key)), services.clock.now());
  },
  async list(body, { services, keys }) {
    const { rows, ...page } = pageOfKeys(body, keys);
    return { keys: rows.map((key) => keyInfo(key, services.clock.now())), ...page };
  },
};

/** Serves `gateway keys` on the control socket, whose user is the operator and needs no master key. */
export function serveKeyOperations(surface: HttpSurface, gateway: OperationServices): void {
  for (const [verb, handle] of Object.entries(handlers)) {
    serveOperation(surface, `${KEYS_PATH}/${verb}`, anything, ({ by, ...body }, { correlation }) =>
      handle(body, gateway, { correlation, by: label.catch('operator').parse(by) }),
    );
  }
}
