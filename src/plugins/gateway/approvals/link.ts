import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import type { AlertLinkMaker } from '../../../core/contracts/alerts.ts';
import { isSameSecret } from '../../../core/host/http/admission.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { createSecretFile, readSecretFile } from '../../../core/kernel/secret-file.ts';
import { GatewayError } from '../errors.ts';
import type { Approvals } from './approvals.ts';

/** Where the page of a request is; no name of a server has a hyphen, so that it stands in the way of none. */
export const PAGE_PATH = '/call-approvals';
const KEY_BYTES = 32;
const FORM = /^(\d{1,16})\.([\w-]{43})$/;

interface LinkOptions {
  readonly approvals: Pick<Approvals, 'find'>;
  readonly clock: Pick<Clock, 'now'>;
  /** Absolute path of the data folder, in whose `secrets` the key lies. */
  readonly dataDir: string;
  /** How long a person has, milliseconds. */
  readonly deadlineMs: number;
  /** The key of a cluster, whose hosts know each other's links. */
  readonly sharedKey: Buffer | undefined;
  /** The base that people's browsers reach, without a slash at its end; without it there are no links. */
  readonly publicBase: string | undefined;
}

/** Signed links to the pages of requests: who has one may decide about that request, until its deadline. */
export class ApprovalLinks implements AlertLinkMaker {
  readonly #options: LinkOptions;
  readonly #key: KeyObject | undefined;

  /** @throws HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_FOLDER, HF_CONFIG_SECRET_INVALID the key can't be used */
  constructor(options: LinkOptions) {
    this.#options = options;
    const { publicBase, sharedKey, dataDir } = options;
    const key = sharedKey ? createSecretKey(sharedKey) : undefined;
    this.#key = publicBase === undefined ? undefined : (key ?? readKey(dataDir));
  }

  linkOf({ name, labels }: Parameters<AlertLinkMaker['linkOf']>[0]): string | undefined {
    const { approvals, publicBase, sharedKey, clock, deadlineMs } = this.#options;
    if (name !== 'gateway.approval_waiting' || labels.state !== 'firing' || !this.#key) return undefined;
    const id = labels.approval ?? '';
    const place = approvals.find(id);
    if (place ? place.value !== 'waiting' : !sharedKey) return undefined;
    // Of a request of another host only its id is known here: its page says when its time is over.
    const until = place?.context.until ?? clock.now() + deadlineMs;
    return `${publicBase}${PAGE_PATH}/${id}?token=${until}.${sign(this.#key, id, until)}`;
  }

  /** @throws HF_GATEWAY_APPROVAL_LINK the token was made for another request, or by nobody, or its time is over */
  check(id: string, token: unknown): void {
    const [, until = '', mac = ''] = FORM.exec(typeof token === 'string' ? token : '') ?? [];
    const isSigned =
      this.#key !== undefined && mac !== '' && isSameSecret(mac, sign(this.#key, id, Number(until)));
    if (!isSigned)
      throw new GatewayError('HF_GATEWAY_APPROVAL_LINK', { reason: 'its signature is not ours' });
    if (this.#options.clock.now() >= Number(until)) {
      throw new GatewayError('HF_GATEWAY_APPROVAL_LINK', { reason: 'its time is over' });
    }
  }
}

function readKey(dataDir: string): KeyObject {
  const file = resolve(dataDir, 'secrets', 'gateway-approval-key');
  createSecretFile(file, randomBytes(KEY_BYTES));
  return createSecretKey(readSecretFile(file));
}

const sign = (key: KeyObject, id: string, until: number): string =>
  createHmac('sha256', key).update(`holdfast/approval/${id}/${until}`).digest('base64url');
