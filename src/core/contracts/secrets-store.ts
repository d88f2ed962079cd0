import { defineErrors } from '../kernel/errors/holdfast-error.ts';
import { defineToken, type Token } from './token.ts';

/** What may be shown of a secret, which is never its value. */
export interface SecretDescription {
  readonly exists: boolean;
  /** For people: a file, a variable or a URL. */
  readonly place: string;
  /** When it was last written (epoch ms), if the store knows; a store that versions whole paths gives the time of the path. */
  readonly changedAt?: number | undefined;
}

/** A store of secrets that are named by path and property, e.g. a folder of files or a server of secrets. @public */
export interface SecretsStore {
  /**
   * Reads one secret as it is now. What it gives must never be logged, recorded or put in a URL.
   *
   * @param path e.g. `mcp/library_docs`
   * @param property e.g. `token`
   * @throws HF_CONFIG_SECRET_MISSING there is none
   * @throws HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID it must not be used as it is stored
   * @throws HF_SECRETS_UNREACHABLE, HF_SECRETS_REFUSED of a store elsewhere
   */
  read(path: string, property: string, signal: AbortSignal): Promise<string>;
  /**
   * Puts a value in the place of one property, now and durably; other properties of the path stay as they are.
   *
   * Absent where the store can only be read: a person then writes it, at the place that `describe` returns.
   *
   * @param value one line
   * @throws HF_SECRETS_CONFLICT somebody else wrote meanwhile, again and again
   */
  write?(path: string, property: string, value: string, signal: AbortSignal): Promise<void>;
  /**
   * What the store's policy lets our token do with a path, e.g. `read`; absent in a store without policies.
   *
   * @throws HF_SECRETS_UNREACHABLE, HF_SECRETS_REFUSED
   */
  rights?(path: string, signal: AbortSignal): Promise<readonly string[]>;
  /** Where a secret is, and how old; absent in a store that knows neither. */
  describe?(path: string, property: string, signal: AbortSignal): Promise<SecretDescription>;
}

/** Provided by the plugin that keeps secrets, where there is one. @public */
export const SecretsStoreToken: Token<SecretsStore> = defineToken('secrets.store');

/** Errors of secrets stores, whichever plugin speaks to one. */
export const SecretsError = defineErrors({
  HF_SECRETS_UNREACHABLE: {
    status: 502,
    what: 'The secrets store at {place} gave no usable answer: {reason}.',
    remedy:
      'Look whether it runs, is unsealed and is reached from here; nothing was changed unless its own log says so.',
  },
  HF_SECRETS_REFUSED: {
    status: 502,
    what: 'The secrets store refuses to {what} {place}.',
    remedy:
      "Give the policy of Holdfast's token the rights read, create, update and patch on that path, or renew the token.",
  },
  HF_SECRETS_CONFLICT: {
    status: 409,
    what: 'The secret {place} was changed by somebody else while it was written.',
    remedy: 'Look who writes there, and do it again.',
  },
});
