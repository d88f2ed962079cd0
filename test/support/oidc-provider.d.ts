/** What the tests use of oidc-provider, which brings no types. */
declare module 'oidc-provider' {
  import type { RequestListener } from 'node:http';

  interface Token {
    readonly accountId: string;
    readonly expiration: number;
    resourceServer: unknown;
    save(): Promise<string>;
  }

  interface Context {
    body: object;
    readonly oidc: {
      readonly client: object;
      readonly params: Readonly<Record<string, string | undefined>>;
      entity(name: string, token: Token): void;
    };
  }

  export default class Provider {
    constructor(issuer: string, configuration: object);
    callback(): RequestListener;
    readonly Client: { find(id: string): Promise<object | undefined> };
    readonly AccessToken: {
      new (facts: object): Token;
      find(value: string): Promise<Token | undefined>;
    };
    readonly ResourceServer: new (
      resource: string,
      facts: object,
    ) => object;
    registerGrantType(
      name: string,
      handler: (context: Context) => Promise<void>,
      parameters: readonly string[],
    ): void;
  }

  export const errors: { readonly InvalidGrant: new (detail: string) => Error };
}
