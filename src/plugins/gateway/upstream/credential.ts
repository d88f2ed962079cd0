import type { Route } from '../routes/table.ts';

/** An upstream that repeats the gateway's own credential in its answer. */
export class CredentialRepeated extends Error {}

/**
 * Looks for the token of an overwrite route in what comes back: whoever holds a key must not get to see it. One that an
 * upstream hides on purpose is not found.
 *
 * @returns a look at the next part of an answer, which throws CredentialRepeated; also when two parts hold a half each
 */
export function credentialWatch({ entry, credential }: Route): (part: Buffer) => void {
  const token = entry.disposition === 'overwrite' ? credential(undefined).authorization : undefined;
  const secret = Buffer.from(token?.replace(/^Bearer /, '') ?? '');
  if (secret.length === 0) return () => undefined;
  let end: Buffer = Buffer.alloc(0);
  return (part) => {
    const seam = Buffer.concat([end, part.subarray(0, secret.length - 1)]);
    if (part.includes(secret) || seam.includes(secret)) throw new CredentialRepeated();
    end = (part.length < secret.length ? Buffer.concat([end, part]) : part).subarray(-(secret.length - 1));
    if (secret.length === 1) end = Buffer.alloc(0);
  };
}
