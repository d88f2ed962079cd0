/**
 * Why an authorization server gives no token. None of its texts repeats what was sent or received but a code of OAuth.
 */
export class TokenFault extends Error {
  /** Whose fault it is: `server` is a state of the route, `caller` refuses the caller's own token, `busy` passes. */
  readonly of: 'server' | 'caller' | 'busy';
  /** For operators: it names the server. */
  readonly reason: string;
  /** For clients: a predicate about the authorization server, or the code that refuses the caller's token. */
  readonly shown: string;

  constructor(of: TokenFault['of'], reason: string, shown: string) {
    super(reason);
    this.of = of;
    this.reason = reason;
    this.shown = shown;
  }
}

/** What a client reads of a route whose upstream can't be asked for want of a token: `The route x is …`. */
export const withoutToken = ({ of, shown }: TokenFault): string =>
  of === 'caller'
    ? `without a token for you: its authorization server refuses yours (${shown})`
    : `without a usable token: its authorization server ${shown}`;
