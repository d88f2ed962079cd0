import type { NetworkConfig } from '../../core/contracts/router.ts';
import { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../core/kernel/json.ts';
import { validateConfig } from './validate.ts';

/** Fields of a posted body that steer the write and are no part of the config (R4); `reqId` is dropped unread. */
export const CONTROL_FIELDS: readonly string[] = ['transactionOp', 'transID', 'ignoreNcid', 'reqId'];

/** A posted body, understood. */
export interface ConfigRequest {
  readonly op?: 'append' | 'commit' | 'revert';
  /** Set with `op`. */
  readonly transID?: string;
  readonly ncid?: string;
  readonly ignoreNcid?: true;
  /** The config as posted, without control fields; absent for commit and revert, which need none. */
  readonly config?: NetworkConfig;
}

const LONGEST_ID = 256;

/**
 * Understands the body of `POST /v1/config/set`: the config, and the control fields in it.
 *
 * @throws HF_ROUTER_REQUEST_INVALID the body or a control field is not what it must be
 * @throws HF_ROUTER_CONFIG_INVALID the config has a bad field
 */
export function parseRequest(body: unknown): ConfigRequest {
  if (!isObject(body)) return invalid('the body must be a JSON object');
  const { transactionOp, transID, ignoreNcid, ncid } = body;
  const op = operation(transactionOp);
  if (transID !== undefined && !isId(transID)) {
    return invalid(`transID must be a non-empty string of at most ${LONGEST_ID} characters`);
  }
  if (op && transID === undefined) return invalid('transactionOp needs a transID');
  const transaction = op && transID !== undefined ? { op, transID } : {};
  if (op === 'commit' || op === 'revert') return transaction;

  if (ncid !== undefined && !isId(ncid)) return invalid('ncid must be a string, the one that was read');
  if (ignoreNcid !== undefined && typeof ignoreNcid !== 'boolean') {
    return invalid('ignoreNcid must be true or false');
  }
  const config = withoutControlFields(body);
  validateConfig(config);
  return {
    ...transaction,
    ...(ncid !== undefined && { ncid }),
    ...(ignoreNcid === true && { ignoreNcid }),
    config,
  };
}

/** A copy that holds the config alone. */
export function withoutControlFields(config: NetworkConfig): NetworkConfig {
  return Object.fromEntries(Object.entries(config).filter(([key]) => !CONTROL_FIELDS.includes(key)));
}

function operation(value: unknown): ConfigRequest['op'] {
  if (value === undefined || value === 'append' || value === 'commit' || value === 'revert') return value;
  return invalid('transactionOp must be append, commit or revert');
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= LONGEST_ID;
}

function invalid(reason: string): never {
  throw new HoldfastError('HF_ROUTER_REQUEST_INVALID', { reason });
}
