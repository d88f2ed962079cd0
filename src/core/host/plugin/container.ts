import 'reflect-metadata'; // tsyringe refuses to load without it, though no decorator is used here
import { type DependencyContainer, container as root } from 'tsyringe';
import type { Token } from '../../contracts/token.ts';
import type { HoldfastError } from '../../kernel/errors/holdfast-error.ts';
import { HostError } from '../errors/host-error.ts';
import type { PluginDefinition } from './definition.ts';

/** A plugin that provides or reads tokens: its definition lists them. */
export type TokenUser = Pick<PluginDefinition, 'name' | 'requires' | 'wants' | 'provides' | 'collects'>;

/**
 * The adapters of one runtime by typed token (C11). Each is made at its first use and kept until its plugin
 * stops; only a plugin whose definition lists a token may provide or read it.
 */
export class Container {
  readonly #adapters: DependencyContainer = root.createChildContainer();
  readonly #made = new Map<string, { readonly adapter: unknown }>();

  /**
   * Registers the factory of a token; it runs when the token is first read.
   *
   * @param plugin whose factory it is
   * @throws HF_PLUGIN_CONTRACT the plugin does not list the token in `provides`, or provides it twice
   */
  provide<T>(plugin: TokenUser, token: Token<T>, factory: () => T): void {
    if (!lists(plugin.provides, token)) throw breach(plugin, `it provides ${token.name} without listing it`);
    if (this.has(token)) throw breach(plugin, `it provides ${token.name} twice`);
    const kept = () => {
      const made = this.#made.get(token.name) ?? { adapter: factory() };
      this.#made.set(token.name, made);
      return made.adapter;
    };
    this.#adapters.register(token.name, { useFactory: kept });
  }

  /** What a plugin provided is made again when it is next read: the plugin has stopped, and may start again. */
  forget({ provides = [] }: TokenUser): void {
    for (const { name } of provides) this.#made.delete(name);
  }

  has(token: Token<unknown>): boolean {
    return this.#adapters.isRegistered(token.name);
  }

  /**
   * The adapter behind a token.
   *
   * @param plugin who reads it
   * @throws HF_PLUGIN_CONTRACT the plugin lists the token neither in `requires` or `wants` nor in `provides`
   * @throws HF_PLUGIN_MISSING nobody provides the token
   */
  get<T>(plugin: TokenUser, token: Token<T>): T {
    if (![plugin.requires, plugin.wants, plugin.provides].some((tokens) => lists(tokens, token))) {
      throw breach(plugin, `it reads ${token.name} without listing it in requires or wants`);
    }
    if (!this.has(token)) {
      throw new HostError('HF_PLUGIN_MISSING', { plugin: plugin.name, token: token.name });
    }
    return this.#adapters.resolve<T>(token.name);
  }
}

function lists(tokens: readonly Token<unknown>[] | undefined, token: Token<unknown>): boolean {
  return tokens?.some(({ name }) => name === token.name) ?? false;
}

function breach(plugin: TokenUser, reason: string): HoldfastError {
  return new HostError('HF_PLUGIN_CONTRACT', { plugin: plugin.name, reason });
}
