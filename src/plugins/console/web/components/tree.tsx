import type { Change } from '../../api/types.ts';
import { brief } from '../text.tsx';

/** Members of one level that are shown before the rest is asked for. */
const MOST = 200;

const isBranch = (value: unknown): value is object => typeof value === 'object' && value !== null;

/**
 * A value as a tree that folds.
 *
 * @param changed paths that the last record changed, as `a.b.0`
 */
export function Tree({ value, changed = new Set() }: { value: unknown; changed?: ReadonlySet<string> }) {
  if (!isBranch(value)) return <code class="leaf">{brief(value, 2_000)}</code>;
  return (
    <ul class="tree">
      <Members value={value} path="" changed={changed} depth={0} />
    </ul>
  );
}

interface Inside {
  readonly value: object;
  readonly path: string;
  readonly changed: ReadonlySet<string>;
  readonly depth: number;
}

function Members({ value, path, changed, depth }: Inside) {
  const members = Object.entries(value);
  return (
    <>
      {members.slice(0, MOST).map(([name, member]) => {
        const own = path === '' ? name : `${path}.${name}`;
        const mark = changed.has(own) ? 'changed' : undefined;
        if (!isBranch(member) || Object.keys(member).length === 0) {
          return (
            <li key={name} class={mark}>
              <span class="name">{name}</span> <code class="leaf">{brief(member, 500)}</code>
            </li>
          );
        }
        const within = [...changed].some((one) => one.startsWith(`${own}.`));
        return (
          <li key={name} class={mark}>
            <details open={depth < 1 || within}>
              <summary>
                <span class="name">{name}</span> <span class="quiet">{brief(member, 60)}</span>
              </summary>
              <ul class="tree">
                <Members value={member} path={own} changed={changed} depth={depth + 1} />
              </ul>
            </details>
          </li>
        );
      })}
      {members.length > MOST && <li class="quiet">{members.length - MOST} more</li>}
      {members.length === 0 && <li class="quiet">empty</li>}
    </>
  );
}

/** What is different, one path a line. */
export function Changes({ changes }: { changes: readonly Change[] }) {
  if (changes.length === 0) return <p class="quiet">Nothing in its context.</p>;
  return (
    <table class="changes">
      <thead>
        <tr>
          <th scope="col">what</th>
          <th scope="col">before</th>
          <th scope="col">after</th>
        </tr>
      </thead>
      <tbody>
        {changes.map(({ path, from, to }) => (
          <tr key={path}>
            <th scope="row">{path || 'all of it'}</th>
            <td>
              {from === undefined ? <span class="quiet">nothing</span> : <code>{brief(from, 300)}</code>}
            </td>
            <td>{to === undefined ? <span class="quiet">nothing</span> : <code>{brief(to, 300)}</code>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
