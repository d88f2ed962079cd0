// `npm run sbom`: sbom.cdx.json, the software bill of materials of a release in the format of CycloneDX. `npm pack` makes it
// anew. It lists what package-lock.json has for use, with versions, licences and digests: the same bytes from the same lock file.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
const DEVELOPMENT = 'cdx:npm:package:development';

interface Component {
  'bom-ref': string;
  scope: string;
  properties: { name: string }[];
}

const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
  packages: Record<string, { version: string; dev?: true; optional?: true; devOptional?: true }>;
};
/** `name@version` of all packages that are installed for use, also where development needs them too. */
const used = new Map<string, 'required' | 'optional'>();
for (const [path, { version, dev, optional, devOptional }] of Object.entries(packages)) {
  const name = `${path.split('node_modules/').at(-1)}@${version}`;
  if (path === '' || dev || used.get(name) === 'required') continue;
  used.set(name, optional || devOptional ? 'optional' : 'required');
}

// Without `--omit=dev`, by which npm 11 leaves out what development needs too, dependencies of ours among it.
const args = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only', '--include=dev'];
const bill = JSON.parse(execFileSync('npm', args, { cwd: root, encoding: 'utf8', maxBuffer: 64 << 20 }));
const components: Component[] = bill.components;
bill.components = components.flatMap((component) => {
  const scope = used.get(component['bom-ref']);
  // Of a package that is there twice npm describes the first one, which may be that of development.
  const properties = component.properties.filter(({ name }) => name !== DEVELOPMENT);
  return scope === undefined ? [] : [{ ...component, scope, properties }];
});
const own = bill.metadata.component;
const dependencies: { ref: string; dependsOn: string[] }[] = bill.dependencies;
bill.dependencies = dependencies.flatMap(({ ref, dependsOn }) =>
  used.has(ref) || ref === own['bom-ref'] ? [{ ref, dependsOn: dependsOn.filter((on) => used.has(on)) }] : [],
);
// Both are of the run, and the image's digest must follow from the release alone.
delete bill.serialNumber;
delete bill.metadata.timestamp;
// npm names a project as its folder is named.
own.name = own['bom-ref'].replace(/@[^@]*$/, '');
writeFileSync(join(root, 'sbom.cdx.json'), `${JSON.stringify(bill, null, 1)}\n`);
