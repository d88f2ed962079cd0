import type { Reply } from '../../../core/host/http/pending-replies.ts';
import { isObject } from '../../../core/kernel/json.ts';

/** The posts that bear one ncid and are not answered yet, oldest first. */
interface Line {
  readonly posts: number;
  /** Resolves when the newest of them has been answered, or cannot win any more: with what replaced the ncid. */
  readonly replacedBy: Promise<string | undefined>;
}

/**
 * Posts that bear the same ncid take turns, because at most one of them can win (R3). Once one has won, the others have lost
 * before anything is done for them: checking, sealing and storing eight configs of which seven are refused took most of
 * the time of a race.
 *
 * It decides nothing. A post that takes no turn is decided by the machine all the same, and one whose turn comes without a
 * winner before it goes on as if it had come only then. The turns are not in the log: a post that is killed while it waits
 * has had no effect and no answer, like one that is killed before its record is durable (`embedded-router.ts`).
 */
export class NcidTurns {
  readonly #lines = new Map<string, Line>();
  readonly #limit: number;

  /** @param limit how many posts of one ncid may wait behind the first; what comes then takes no turn */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Waits for the answers of the posts that came before with the same ncid, or for the first of them that won.
   *
   * @param answer of this post
   * @returns the ncid that has replaced this one, so that the post is too late; undefined: nobody before it has won
   */
  async take(ncid: string, answer: Promise<Reply>): Promise<string | undefined> {
    const { posts, replacedBy: before } = this.#lines.get(ncid) ?? NOBODY;
    if (posts > this.#limit) return undefined;
    const saved = answer.then(savedAs, () => undefined);
    const replacedBy = before.then((winner) => winner ?? saved);
    this.#lines.set(ncid, { posts: posts + 1, replacedBy });
    void replacedBy.then(() => this.#leave(ncid));
    return before;
  }

  #leave(ncid: string): void {
    const line = this.#lines.get(ncid);
    if (!line) return;
    if (line.posts === 1) this.#lines.delete(ncid);
    else this.#lines.set(ncid, { ...line, posts: line.posts - 1 });
  }
}

const NOBODY: Line = { posts: 0, replacedBy: Promise.resolve(undefined) };

/** The ncid of the saved config; undefined for a refusal. */
function savedAs({ status, body }: Reply): string | undefined {
  return status === 200 && isObject(body) && typeof body.ncid === 'string' ? body.ncid : undefined;
}
