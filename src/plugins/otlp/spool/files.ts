import { appendFileSync, readFileSync, rmSync, writeSync } from 'node:fs';

/** Beside a file: the ids of frames that are in the database, one a line. */
export function marksOf(file: string): string {
  return `${file}.done`;
}

/** Without its mark a frame is inserted once more after a crash, by the same name: no reason to end here. */
export function mark(file: string, id: string): void {
  try {
    appendFileSync(marksOf(file), `${id}\n`, { mode: 0o600 });
  } catch {}
}

/** Ids of the frames of a file that are in the database. */
export function marked(file: string): string[] {
  try {
    return readFileSync(marksOf(file), 'utf8').split('\n');
  } catch {
    return [];
  }
}

/** A file with its marks. */
export function remove(file: string): void {
  rmSync(file, { force: true });
  rmSync(marksOf(file), { force: true });
}

/** Writes parts one behind the other, as one. @param position bytes from the file's start @throws what the disk says */
export function writeAll(fd: number, parts: readonly Buffer[], position: number): void {
  const whole = Buffer.concat(parts);
  for (let done = 0; done < whole.length; ) {
    done += writeSync(fd, whole, done, whole.length - done, position + done);
  }
}
