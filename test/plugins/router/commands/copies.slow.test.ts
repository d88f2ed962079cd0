import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import test from 'ava';
import { countSecrets } from '../../../../src/plugins/router/config/secrets.ts';
import { exampleConfig } from '../rig.ts';
import { setUpDesk } from './setup.ts';

const SECRET = /EXAMPLEx(PRIVATE|PRESHARED)|example-not-a-secret/;

test.serial(
  '[R35] --with-secrets encrypts for age, mode 0600; the key reads it back, and apply does too',
  async (t) => {
    const { rig, holdfast, cwd } = await setUpDesk(t);
    const at = (name: string) => join(cwd, name);
    const identity = await generateX25519Identity();
    writeFileSync(at('key'), `# ours\n${identity}\n`, { mode: 0o600 });
    writeFileSync(at('recipients'), `# ours\n${await identityToRecipient(identity)}\n`);
    const written = await holdfast([
      'router',
      'get',
      '--with-secrets',
      '--out',
      at('copy.age'),
      '--recipient-file',
      at('recipients'),
    ]);
    t.is(written.code, 0, written.err);
    t.regex(written.err, /\d+ secrets are encrypted/);
    const content = readFileSync(at('copy.age'), 'latin1');
    t.regex(content, /^age-encryption\.org\/v1\n/);
    t.notRegex(content, SECRET);
    t.is(statSync(at('copy.age')).mode & 0o777, 0o600);
    const same = await holdfast(['router', 'apply', at('copy.age'), '--identity-file', at('key'), '--yes']);
    t.regex(same.out, /Nothing would change/, same.err);
    const changed = await rig.active();
    changed.interface.vlan['eth1.40'].ipv4 = '10.77.41.1/24';
    t.is((await rig.set(changed)).status, 200);
    const back = await holdfast(['router', 'restore', at('copy.age'), '--identity-file', at('key'), '--yes']);
    t.is(back.code, 0, back.err);
    t.is((await rig.active()).interface.vlan['eth1.40'].ipv4, '10.77.40.1/24');
  },
);

test.serial('[R35] a passphrase comes from a file of mode 0600, and a wrong one opens nothing', async (t) => {
  t.timeout(240_000); // deriving a key from a passphrase takes long on purpose
  const { holdfast, cwd } = await setUpDesk(t);
  const at = (name: string) => join(cwd, name);
  writeFileSync(at('phrase'), 'six words that nobody would guess\n', { mode: 0o600 });
  writeFileSync(at('other'), 'another\n', { mode: 0o600 });
  writeFileSync(at('open'), 'another\n', { mode: 0o644 });
  const get = (...more: string[]) =>
    holdfast(['router', 'get', '--with-secrets', '--out', at('copy.age'), ...more]);
  t.regex((await get('--passphrase-file', at('open'))).err, /HF_CONFIG_SECRET_MODE/);
  const none = await get();
  t.is(none.code, 2);
  t.regex(none.err, /--recipient-file or --passphrase-file/);
  t.false(existsSync(at('copy.age')));
  t.is((await get('--passphrase-file', at('phrase'))).code, 0);
  const apply = (file: string) =>
    holdfast(['router', 'apply', at('copy.age'), '--yes', '--passphrase-file', at(file)]);
  t.regex((await apply('phrase')).out, /Nothing would change/);
  t.regex((await apply('other')).err, /HF_ROUTER_FILE[\s\S]*cannot be decrypted/);
});

test.serial(
  '[R35] only --plaintext writes secrets as they are; without --with-secrets it is refused',
  async (t) => {
    const { rig, holdfast, cwd } = await setUpDesk(t);
    const out = join(cwd, 'copy.json');
    t.is((await holdfast(['router', 'get', '--plaintext', '--out', out])).code, 2);
    t.is((await holdfast(['router', 'get', '--with-secrets'])).code, 2);
    t.is((await holdfast(['router', 'get', '--with-secrets', '--plaintext', '--out', out])).code, 0);
    t.deepEqual(JSON.parse(readFileSync(out, 'utf8')), await rig.active());
    t.is(statSync(out).mode & 0o777, 0o600);
  },
);

test.serial(
  '[R35] a copy is refused in a git work tree, also through a link, and over anything that is there',
  async (t) => {
    const { holdfast, cwd } = await setUpDesk(t);
    const tree = join(cwd, 'tree');
    mkdirSync(join(tree, 'deep'), { recursive: true });
    mkdirSync(join(tree, '.git'));
    symlinkSync(join(tree, 'deep'), join(cwd, 'link'));
    writeFileSync(join(cwd, 'there.json'), 'mine');
    symlinkSync(join(cwd, 'target.json'), join(cwd, 'dangling.json'));
    for (const [file, why] of [
      [join(tree, 'deep', 'copy.json'), /git work tree/],
      [join(cwd, 'link', 'copy.json'), /git work tree/],
      [join(cwd, 'there.json'), /EEXIST/],
      [join(cwd, 'dangling.json'), /EEXIST|ELOOP/],
      [join(cwd, 'nowhere', 'copy.json'), /ENOENT/],
    ] as const) {
      const { code, err } = await holdfast(['router', 'get', '--out', file]);
      t.is(code, 1, file);
      t.regex(err, /HF_ROUTER_COPY/);
      t.regex(err, why);
    }
    t.is(readFileSync(join(cwd, 'there.json'), 'utf8'), 'mine');
    t.false(existsSync(join(cwd, 'target.json')));
  },
);

test.serial(
  '[R32] router secrets counts them and names their paths, running or not, never a value',
  async (t) => {
    const { rig, holdfast } = await setUpDesk(t);
    const { count, paths } = countSecrets(exampleConfig());
    const listed = await holdfast(['router', 'secrets']);
    t.is(listed.out, `${paths.join('\n')}\n`);
    t.regex(listed.err, new RegExp(`^${count} secrets; read from ${rig.url}`));
    await rig.runtime.stop('test');
    const stopped = await holdfast(['router', 'secrets', '--json']);
    t.deepEqual(JSON.parse(stopped.out), { count, paths });
    t.notRegex(listed.out + stopped.out, SECRET);
  },
);
