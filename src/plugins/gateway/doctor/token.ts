import { isObject } from '../../../core/kernel/json.ts';

/**
 * What of an identity token can be seen without its key: whom it is for and until when. Nothing else of it is shown.
 *
 * @param audience that the upstream wants
 * @param now epoch milliseconds
 * @returns undefined when neither explains a refusal
 */
export function tokenProblem(token: string, audience: string | undefined, now: number): string | undefined {
  const claims = claimsOf(token);
  if (!claims) return 'the token is no JWT';
  const { aud, exp } = claims;
  if (typeof exp === 'number' && exp * 1_000 <= now) return 'the token has expired';
  const given = (Array.isArray(aud) ? aud : [aud]).filter((item) => typeof item === 'string');
  if (audience !== undefined && !given.includes(audience)) {
    return `the token is for ${given.join(', ') || 'nobody'}, and the upstream wants ${audience}`;
  }
  return undefined;
}

/** Whether anything of a token can be read. */
export const isJwt = (token: string): boolean => claimsOf(token) !== undefined;

function claimsOf(token: string): Record<string, unknown> | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    return isObject(claims) ? claims : undefined;
  } catch {
    return undefined;
  }
}
