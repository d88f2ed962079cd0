import { CoreError } from '../../kernel/errors/core-error.ts';
import 'reflect-metadata'; // tsyringe refuses to load without it, though no decorator is used here
import { type DependencyContainer, instanceCachingFactory, container as root } from 'tsyringe';
import type { Token } from '../../contracts/token.ts';
import type { HoldfastError } from '../../kernel/errors/holdfast-error.ts';

/** Who asks, and which tokens its definition names. */
export interface Reader {
  readonly name: string;
  readonly requires?: readonly Token<unknown>[];
  readonly wants?: readonly Token<unknown>[];
  readonly provides?: readonly Token<unknown>[];
}

/** What a factory made, or why it could not. A failed factory is not run again: it would half-open things twice. */
type Made = { readonly value: unknown } | { readonly error: unknown };

/**
 * The adapters of one runtime by typed token (C11). tsyringe keeps the factories and caches what they make; this adds what it lacks:
 * only a plugin that names a token may read it, a circle of factories is an error instead of an overflow, and
 * after boot nothing can be added.
 */
export class Container {
  readonly #instances: DependencyContainer = root.createChildContainer();
  readonly #resolving: string[] = [];
  #frozen = false;

  /**
   * Registers the factory of a token; it runs once, when the token is first read.
   *
   * @param plugin whose factory it is
   * @throws HF_PLUGIN_FROZEN after boot
   * @throws HF_PLUGIN_CONTRACT the plugin does not list the token in `provides`, or provides it twice
   */
  provide<T>(plugin: Reader, token: Token<T>, factory: () => T): void {
    if (this.#frozen) {
      throw new CoreError('HF_PLUGIN_FROZEN', { plugin: plugin.name, what: `token ${token.name}` });
    }
    if (!lists(plugin.provides, token)) throw breach(plugin, `it provides ${token.name} without listing it`);
    if (this.has(token)) throw breach(plugin, `it provides ${token.name} twice`);
    // Boxed, because tsyringe runs the factory of an undefined instance again.
    const make = instanceCachingFactory<Made>(() => {
      try {
        return { value: factory() };
      } catch (error) {
        return { error };
      }
    });
    this.#instances.register<Made>(token.name, { useFactory: make });
  }

  has(token: Token<unknown>): boolean {
    return this.#instances.isRegistered(token.name);
  }

  /**
   * The instance behind a token.
   *
   * @param plugin who reads it
   * @throws HF_PLUGIN_CONTRACT the plugin lists the token neither in `requires` nor in `provides`
   * @throws HF_PLUGIN_MISSING nobody provides the token
   * @throws HF_PLUGIN_CYCLE its factory needs itself, directly or through others
   */
  get<T>(plugin: Reader, token: Token<T>): T {
    if (![plugin.requires, plugin.wants, plugin.provides].some((tokens) => lists(tokens, token))) {
      throw breach(plugin, `it reads ${token.name} without listing it in requires or wants`);
    }
    if (!this.has(token)) {
      throw new CoreError('HF_PLUGIN_MISSING', { plugin: plugin.name, token: token.name });
    }
    if (this.#resolving.includes(token.name)) {
      const cycle = [...this.#resolving.slice(this.#resolving.indexOf(token.name)), token.name].join(' → ');
      throw new CoreError('HF_PLUGIN_CYCLE', { cycle });
    }
    this.#resolving.push(token.name);
    try {
      const made = this.#instances.resolve<Made>(token.name);
      if ('error' in made) throw made.error;
      return made.value as T;
    } finally {
      this.#resolving.pop();
    }
  }

  /** Refuses every later `provide`. */
  freeze(): void {
    this.#frozen = true;
  }
}

function lists(tokens: readonly Token<unknown>[] | undefined, token: Token<unknown>): boolean {
  return tokens?.some(({ name }) => name === token.name) ?? false;
}

function breach(plugin: Reader, reason: string): HoldfastError {
  return new CoreError('HF_PLUGIN_CONTRACT', { plugin: plugin.name, reason });
}
