// `npm run sbom`: sbom.cdx.json, the software bill of materials of a release in the format of CycloneDX. `npm pack` makes it
// anew. It lists what package-lock.json has for use, with versions, licences and digests: the same bytes from the same lock file.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
// `.npmrc` includes what development needs, which would count more than `--omit=dev`.
const args = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only', '--omit=dev', '--include=prod'];
const bill = JSON.parse(execFileSync('npm', args, { cwd: root, encoding: 'utf8', maxBuffer: 64 << 20 }));
// Both are of the run, and the image's digest must follow from the release alone.
delete bill.serialNumber;
delete bill.metadata.timestamp;
// npm names a project as its folder is named.
bill.metadata.component.name = bill.metadata.component['bom-ref'].replace(/@[^@]*$/, '');
writeFileSync(join(root, 'sbom.cdx.json'), `${JSON.stringify(bill, null, 1)}\n`);
