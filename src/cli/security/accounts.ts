import { readFileSync } from 'node:fs';

/** A user for a person, e.g. `user maria`; by its number where this machine does not know it. */
export const userName = (uid: number): string => `user ${nameIn('/etc/passwd', uid)}`;

/** A group by its name, or its number where this machine does not know it. */
export const groupName = (gid: number): string => nameIn('/etc/group', gid);

/** Both files have a line for each account: its name, a field that is not used any more, its number. */
function nameIn(file: string, id: number): string {
  try {
    const line = readFileSync(file, 'utf8')
      .split('\n')
      .find((each) => each.split(':')[2] === String(id));
    return line?.split(':')[0] ?? String(id);
  } catch {
    return String(id);
  }
}
