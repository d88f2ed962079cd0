/**
 * One parameter of an upstream's challenge (`WWW-Authenticate`, RFC 9110).
 *
 * @returns undefined when it is not there, or is longer than 512 characters
 */
export function challengeParameter(challenge: string, name: string): string | undefined {
  const quoted = new RegExp(`(?:^|[\\s,])${name}="([\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]{1,512})"`, 'i');
  const bare = new RegExp(`(?:^|[\\s,])${name}=([\\w.:-]{1,512})(?=$|[\\s,])`, 'i');
  return (quoted.exec(challenge) ?? bare.exec(challenge))?.[1];
}
