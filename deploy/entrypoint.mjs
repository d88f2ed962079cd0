// What the image and the units start: `holdfast` with the same arguments, and its secrets in the form that it takes.
//
// A Secret is mounted for root and a group, and credentials of newer systemd have an access list: both have group bits
// in their mode, and a secret file with those is refused. So each file is copied, mode 0600, into a folder of memory that
// is this process's own, and the configuration finds it there: CREDENTIALS_DIRECTORY names that folder from here on.
//   in a pod         /run/secrets/mounted    to  /run/secrets/holdfast (an emptyDir, medium Memory)
//   under systemd    $CREDENTIALS_DIRECTORY  to  $RUNTIME_DIRECTORY
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const {
  CREDENTIALS_DIRECTORY: mounted = '/run/secrets/mounted',
  RUNTIME_DIRECTORY: own = '/run/secrets/holdfast',
} = process.env;

// A pod has no other users, and its volumes are writable for all that run in it.
if (process.env.RUNTIME_DIRECTORY === undefined) process.env.HOLDFAST_SOLE_USER ??= '1';
process.umask(0o077);
process.env.CREDENTIALS_DIRECTORY = own;
if (copySecrets()) await import('../bin/holdfast.js');

function copySecrets() {
  try {
    for (const name of existsSync(mounted) ? readdirSync(mounted) : []) {
      const file = join(mounted, name);
      // Kubernetes keeps the versions of a Secret in folders beside the links to its files.
      if (statSync(file).isFile()) writeFileSync(join(own, name), readFileSync(file), { mode: 0o600 });
    }
    return true;
  } catch (error) {
    console.error(`The secrets of ${mounted} could not be copied to ${own}: ${error.message}`);
    console.error(
      'What to do: mount the Secret readable for the group of the pod, and an emptyDir of medium Memory there.',
    );
    process.exitCode = 1;
    return false;
  }
}
