/** Units of `deploy/`, started as systemd starts them: variables, specifiers, folders and credentials. */
import { chmodSync, chownSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Scope } from '../support/scope.ts';
import { tempDir } from '../support/temp.ts';
import { deploy } from './manifests.ts';
import type { Container, Mount } from './tree.ts';

/** The user that stands in for one of `DynamicUser`, or of `User`. */
const USER = 65_532;

/** Settings of a unit, in order; a name may come several times. */
export function settingsOf(text: string): [string, string][] {
  return text
    .split('\n')
    .filter((line) => /^[A-Z]\w*=/.test(line))
    .map((line) => line.split(/=(.*)/s, 2) as [string, string]);
}

export interface Installation {
  /** Files of `/etc/holdfast`. */
  readonly etc: Readonly<Record<string, string>>;
  /** What the operator's `EnvironmentFile` holds. */
  readonly env: Readonly<Record<string, string>>;
  readonly credentials?: Readonly<Record<string, string>>;
  /** Folder below `/etc/holdfast` with secrets that an agent has written for the unit's user. */
  readonly agent?: { readonly folder: string; readonly secrets: Readonly<Record<string, string>> };
}

/** @returns how the unit is started, the folder of the host that is its state, and that of an agent's secrets */
export function unitOf(
  t: Scope,
  name: string,
  { etc, env, credentials = {}, agent }: Installation,
): { container: Container; state: string; secrets: string } {
  const settings = settingsOf(readFileSync(join(deploy, name), 'utf8'));
  const all = (setting: string) => settings.flatMap(([key, value]) => (key === setting ? [value] : []));
  const installed = folder(t, etc);
  const mounts: Mount[] = [{ from: installed, at: '/etc/holdfast', readOnly: true }];
  const secrets = join(installed, agent?.folder ?? '');
  if (agent) mkdirSync(secrets, { mode: 0o755 });
  for (const [name, secret] of Object.entries(agent?.secrets ?? {})) deliver(secrets, name, secret);
  const variables: Record<string, string> = {};
  for (const pair of all('Environment')) {
    const [key = '', value = ''] = pair.replaceAll('%t', '/run').split(/=(.*)/s, 2);
    variables[key] = value;
  }
  const wanted = all('LoadCredential').map((line) => line.split(':')[0] ?? '');
  for (const credential of wanted) {
    if (credentials[credential] === undefined)
      throw new Error(`no credential ${credential}: systemd starts nothing`);
  }
  if (wanted.length > 0) {
    // Newer systemd gives its user an access list, which shows as the bits of the group.
    const at = `/run/credentials/${name}`;
    mounts.push({ from: folder(t, credentials, 0o440, USER), at, readOnly: true });
    variables.CREDENTIALS_DIRECTORY = at;
  }
  for (const [setting, place, variable] of [
    ['RuntimeDirectory', '/run', 'RUNTIME_DIRECTORY'],
    ['StateDirectory', '/var/lib', 'STATE_DIRECTORY'],
    ['CacheDirectory', '/var/cache', 'CACHE_DIRECTORY'],
  ] as const) {
    const [directory] = all(setting);
    if (directory === undefined) continue;
    const from = tempDir(t);
    chownSync(from, USER, USER);
    chmodSync(from, Number.parseInt(all(`${setting}Mode`)[0] ?? '755', 8));
    mounts.push({ from, at: join(place, directory) });
    variables[variable] = join(place, directory);
  }
  // A file of variables counts more than those of the unit.
  const given: Record<string, string> = { ...variables, ...(all('EnvironmentFile').length > 0 && env) };
  const argv = (all('ExecStart')[0] ?? '')
    .split(' ')
    .map((word) => word.replace(/\$\{(\w+)\}/g, (_, variable) => given[variable] ?? ''));
  const state = mounts.find(({ at }) => at === given.STATE_DIRECTORY)?.from ?? '';
  return { container: { argv, env: given, mounts }, state, secrets };
}

/** As a secrets agent writes one for the unit's user: whole or not at all, mode 0600. */
export function deliver(folder: string, name: string, secret: string): void {
  const draft = join(folder, `.${name}.new`);
  writeFileSync(draft, secret, { mode: 0o600 });
  chownSync(draft, USER, USER);
  renameSync(draft, join(folder, name));
}

function folder(t: Scope, files: Readonly<Record<string, string>>, mode = 0o644, group = 0): string {
  const dir = tempDir(t);
  chmodSync(dir, 0o755);
  for (const [name, content] of Object.entries(files)) {
    const file = join(dir, name);
    writeFileSync(file, content);
    chownSync(file, 0, group);
    chmodSync(file, mode);
  }
  return dir;
}

/** Installs all units of `deploy/` in a tree, where systemd looks for them. @returns their names */
export function installUnits(tree: string, names: readonly string[]): void {
  const place = join(tree, 'etc/systemd/system');
  mkdirSync(place, { recursive: true });
  for (const name of names) writeFileSync(join(place, name), readFileSync(join(deploy, name)));
}
