import { registerHooks } from 'node:module';

/** `src/` in a checkout, `dist/` in the published package. */
const ROOT = new URL('../../../', import.meta.url);
const EXTENSION = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
const OWN = /^holdfast(?:\/(machines|testing|plugins\/[a-z0-9-]+))?$/;

/** The entrances that are no `index` of a folder of their name, as in the `exports` of package.json. */
const ENTRANCES: Readonly<Record<string, string>> = {
  machines: 'machines/effect',
  testing: 'core/host/testing/index',
};

let registered = false;

/**
 * Lets a configuration lie anywhere: from then on `holdfast` and its sub-paths mean the modules of this very
 * process (a second copy would know other classes and other tokens), and a package that a file outside this
 * installation imports without having it is looked for among ours.
 */
export function serveOwnModules(): void {
  if (registered) return;
  registered = true;
  registerHooks({
    resolve(specifier, context, next) {
      const own = ownModule(specifier);
      if (own) return next(own, context);
      try {
        return next(specifier, context);
      } catch (error) {
        const outside = !context.parentURL?.startsWith(new URL('..', ROOT).href);
        if (!outside || !/^(@[^/]+\/)?[^./:]+(\/|$)/.test(specifier)) throw error;
        return next(specifier, { ...context, parentURL: import.meta.url });
      }
    },
  });
}

function ownModule(specifier: string): string | undefined {
  const [match, path = '.'] = OWN.exec(specifier) ?? [];
  if (match === undefined) return undefined;
  return new URL(`${ENTRANCES[path] ?? `${path}/index`}${EXTENSION}`, ROOT).href;
}
