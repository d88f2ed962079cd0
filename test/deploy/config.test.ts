import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { root } from '../support/cli.ts';

/** The file without its comments, its imports by the names of the package. */
function configOf(file: string): string {
  return readFileSync(join(root, file), 'utf8')
    .replace(/^ *\/\/.*\n/gm, '')
    .replaceAll("'./src/core/host/config/define-config.ts'", "'holdfast'")
    .replace(/'\.\/src\/plugins\/([\w-]+)\/index\.ts'/g, "'holdfast/plugins/$1'");
}

test('[C11] the configuration of the service lists the plugins and options of the repository, and differs in nothing', (t) => {
  const service = configOf('deploy/holdfast.config.ts');
  t.true(service.includes('router()') && !service.includes('//'));
  t.is(service, configOf('plugins.config.ts'));
});
