import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';

/** What a route's credential is made of. */
export interface RouteToken {
  /** Why it can't be used now; undefined while it can. */
  readonly problem: TokenProblem | undefined;
  /** The error that refuses its definition; undefined where there is none to refuse. */
  readonly unusable: HoldfastError | undefined;
  /** Calls back when `problem` may be another one. There is one listener. */
  onChange(listener: () => void): void;
  /** Gets what has to be got before `problem` is known. */
  ready(): Promise<void>;
  /** Ends what it does by itself. */
  close(): void;
}

/** Why the token of a route can't be used. */
export interface TokenProblem {
  /** For operators: it names the file, the variable or the place in the store. */
  readonly reason: string;
  /** For clients: it names no place. */
  readonly shown: string;
  /** The last good token goes on: for as long as this process lives, or until `endsAt`. */
  readonly lastGood: boolean;
  /** An authorization server does not issue one. */
  readonly issued?: true;
  /** When the last token that it issued ends, epoch milliseconds. */
  readonly endsAt?: number;
}

/** The secret of the gateway's client at an authorization server. */
export interface ClientSecret extends RouteToken {
  /** @returns it as it is now @throws HF_CONFIG_SECRET_*, HF_GATEWAY_ROUTE it could never be read */
  read(): string;
}
