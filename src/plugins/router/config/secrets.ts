import {
  declareSecretFields,
  isSecretField,
  isSecretPart,
  type Scope,
  scopeInside,
} from '../../../core/host/logging/secret-fields.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { NETWORK_CONFIG, secretFields } from '../secret-fields.ts';

// Declared here too, because a check counts secrets without registering the plugin, and must find the same ones.
declareSecretFields(secretFields);

/** How many secrets a value holds, and where (R32). */
export interface SecretCount {
  readonly count: number;
  /** JSON pointers (RFC 6901), e.g. `/interface/wireguard/wg0/privateKey`. */
  readonly paths: readonly string[];
}

const DEEPEST = 128;

/**
 * Counts the secret values of a network config, by the rules that redaction follows. Empty values are not
 * counted; of `wpaSupplicant`, of which redaction hides everything, only what is a secret by its name.
 */
export function countSecrets(config: unknown): SecretCount {
  const paths: string[] = [];
  const walk = (value: unknown, scope: Scope, path: string, secret: boolean, depth: number): void => {
    if (depth > DEEPEST) return;
    if (Array.isArray(value)) {
      value.forEach((item, index) => {
        walk(item, scope, `${path}/${index}`, secret, depth + 1);
      });
    } else if (isObject(value)) {
      for (const key of Object.keys(value)) {
        const whole = isSecretPart(key);
        const inside = secret || (!whole && isSecretField(scope, value, key));
        walk(value[key], scopeInside(scope, key), `${path}/${pointerPart(key)}`, inside, depth + 1);
      }
    } else if (secret && (typeof value === 'number' || (typeof value === 'string' && value !== ''))) {
      paths.push(path);
    }
  };
  walk(config, NETWORK_CONFIG, '', false, 0);
  return { count: paths.length, paths };
}

function pointerPart(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
