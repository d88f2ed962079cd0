/** Whether package-lock.json fixes what is installed: by digest, from the registry that npm is set to, and without scripts. */
import { z } from 'zod';
import type { Finding } from './answers.ts';

const lock = z.object({
  lockfileVersion: z.literal(3),
  packages: z.record(
    z.string(),
    z.object({
      version: z.string().exactOptional(),
      integrity: z.string().exactOptional(),
      resolved: z.string().exactOptional(),
      link: z.boolean().exactOptional(),
      dev: z.boolean().exactOptional(),
      hasInstallScript: z.boolean().exactOptional(),
      dependencies: z.record(z.string(), z.string()).exactOptional(),
      devDependencies: z.record(z.string(), z.string()).exactOptional(),
      optionalDependencies: z.record(z.string(), z.string()).exactOptional(),
    }),
  ),
});
const manifest = z.object({
  dependencies: z.record(z.string(), z.string()).default({}),
  devDependencies: z.record(z.string(), z.string()).default({}),
  optionalDependencies: z.record(z.string(), z.string()).default({}),
  allowScripts: z.record(z.string(), z.boolean()).default({}),
});

/** 64 bytes in base64. */
const SHA512 = /^sha512-[\w+/]{86}==$/;
/** Of other platforms, and on no registry that the lock file was made with: docs/dependencies.md, "Exceptions". */
const WITHOUT_DIGEST: ReadonlySet<string> = new Set([
  'node_modules/@chdb/lib-darwin-arm64',
  'node_modules/@chdb/lib-darwin-x64',
  'node_modules/@chdb/lib-linux-arm64-gnu',
]);

/**
 * @param lockText parsed package-lock.json
 * @param manifestText parsed package.json
 * @returns `failed` with every fault, else `ok` with what was counted
 */
export function lockFile(lockText: unknown, manifestText: unknown): Finding {
  const { data } = lock.safeParse(lockText);
  if (data === undefined) return { state: 'failed', text: 'package-lock.json is none of version 3' };
  const { allowScripts, ...wanted } = manifest.parse(manifestText);
  const { '': own = {}, ...packages } = data.packages;
  const faults: string[] = [];
  for (const kind of ['dependencies', 'devDependencies', 'optionalDependencies'] as const) {
    const [listed, locked] = [wanted[kind], own[kind] ?? {}];
    for (const name of new Set([...Object.keys(listed), ...Object.keys(locked)]))
      if (listed[name] !== locked[name])
        faults.push(
          `${name} is ${listed[name] ?? 'absent'} in package.json, ${locked[name] ?? 'absent'} in the lock`,
        );
    for (const name of Object.keys(listed))
      if (packages[`node_modules/${name}`] === undefined) faults.push(`${name} is not locked`);
  }
  for (const [path, { integrity, resolved, link, dev, hasInstallScript }] of Object.entries(packages)) {
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    if (link) faults.push(`${path} is a link`);
    // npm leaves out (`omit-lockfile-registry-resolved`) where a package of the registry comes from.
    if (resolved !== undefined) faults.push(`${path} comes from a place of its own`);
    if (!(integrity === undefined ? WITHOUT_DIGEST.has(path) : SHA512.test(integrity)))
      faults.push(`${path} has no sha512 digest`);
    if (!hasInstallScript) continue;
    if (allowScripts[name] === undefined)
      faults.push(`${path} has an install script that nobody decided about`);
    else if (allowScripts[name] && !dev) faults.push(`${path} runs an install script where it is used`);
  }
  if (faults.length > 0) return { state: 'failed', text: faults.join('; ') };
  const bare = Object.keys(packages).filter((path) => packages[path]?.integrity === undefined);
  const but = bare.length === 0 ? '' : ` but ${bare.length} of other platforms`;
  return { state: 'ok', text: `${Object.keys(packages).length} packages, all with a sha512 digest${but}` };
}
