import { runHere } from './core/cli/index.ts';

/** Their machines read any log of this release, also where no `plugins.config.ts` is. */
export async function builtinPlugins() {
  const [{ router }, { reconciler }, { gateway }, { resolveConfig }] = await Promise.all([
    import('./plugins/router/index.ts'),
    import('./plugins/reconciler/index.ts'),
    import('./plugins/gateway/index.ts'),
    import('./core/config/index.ts'),
  ]);
  return resolveConfig({ plugins: [router(), reconciler(), gateway()] }, { env: {} }).plugins;
}

/**
 * The command line; `bin/holdfast.js` calls it on a Node that is new enough.
 *
 * @param argv the arguments after the program's name
 * @returns the exit code: 0 well, 1 the check or the work failed, 2 usage or configuration
 */
export function main(argv: string[]): Promise<number> {
  return runHere(argv, builtinPlugins);
}
