import type { Change } from '../../api/types.ts';
import { address } from '../location.ts';
import { brief } from '../text.tsx';

/** Members of one level that are shown before the rest is asked for. */
const MOST = 200;

const isBranch = (value: unknown): value is object => typeof value === 'object' && value !== null;

interface Props {
  readonly value: unknown;
  /** Paths that the last record changed, e.g. `legs["eth1.20"].since`. */
  readonly changed?: ReadonlySet<string>;
  /** Only what has this text in a name or a value. */
  readonly find?: string;
  /** Makes each name a link that chooses the value; `chosen` is the one that is. */
  readonly actor?: string;
  readonly chosen?: string | undefined;
}

/** A value as a tree that folds. */
export function Tree({ value, changed = new Set(), find = '', actor, chosen }: Props) {
  if (!isBranch(value)) return <code class="leaf">{brief(value, 2_000)}</code>;
  const wanted = find.toLowerCase();
  if (wanted !== '' && !has(value, wanted)) return <p class="quiet">Nothing in it has “{find}”.</p>;
  return (
    <ul class="tree">
      <Members value={value} path="" depth={0} {...{ changed, wanted, actor, chosen }} />
    </ul>
  );
}

/** Whether a name or a value inside has a text. */
function has(value: unknown, wanted: string): boolean {
  if (!isBranch(value)) return brief(value, 2_000).toLowerCase().includes(wanted);
  return Object.entries(value).some(
    ([name, inner]) => name.toLowerCase().includes(wanted) || has(inner, wanted),
  );
}

/** As the API names a value inside of another. */
function joined(path: string, name: string): string {
  if (!/^[A-Za-z_]\w*$/.test(name)) return `${path}[${JSON.stringify(name)}]`;
  return path === '' ? name : `${path}.${name}`;
}

interface Inside extends Required<Pick<Props, 'changed'>> {
  readonly value: object;
  readonly path: string;
  readonly depth: number;
  readonly wanted: string;
  readonly actor: string | undefined;
  readonly chosen: string | undefined;
}

function Members({ value, path, depth, changed, wanted, actor, chosen }: Inside) {
  const members = Object.entries(value).filter(
    ([name, inner]) => wanted === '' || name.toLowerCase().includes(wanted) || has(inner, wanted),
  );
  return (
    <>
      {members.slice(0, MOST).map(([name, member]) => {
        const own = joined(path, name);
        const marks = [changed.has(own) && 'changed', chosen === own && 'chosen'].filter(Boolean).join(' ');
        const label = (text: string) =>
          actor === undefined ? (
            <span class="name">{text}</span>
          ) : (
            <a
              class="name"
              href={address(`/actors/${actor}`, { value: chosen === own ? undefined : own })}
              aria-current={chosen === own ? 'true' : undefined}
              title="Who changed it: n and N"
            >
              {text}
            </a>
          );
        if (!isBranch(member) || Object.keys(member).length === 0) {
          return (
            <li key={name} class={marks}>
              {label(name)} <code class="leaf">{brief(member, 500)}</code>
            </li>
          );
        }
        const begins = (one: string | undefined) => one?.startsWith(own) === true && one !== own;
        const isOpen = depth < 1 || [...changed].some(begins) || begins(chosen) || wanted !== '';
        // What is inside of a name that was found is shown as a whole.
        const inside = name.toLowerCase().includes(wanted) ? '' : wanted;
        return (
          <li key={name} class={marks}>
            <details open={isOpen}>
              <summary>
                <span class="name">{name}</span> <span class="quiet">{brief(member, 60)}</span>
              </summary>
              <ul class="tree">
                {/* Not in the summary: a button holds no link. */}
                {actor !== undefined && <li>{label('who changed it')}</li>}
                <Members
                  value={member}
                  path={own}
                  depth={depth + 1}
                  wanted={inside}
                  {...{ changed, actor, chosen }}
                />
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

/** What is different, one path a line. @param actor whose values they are: each leads to who changed it */
export function Changes({ changes, actor }: { changes: readonly Change[]; actor?: string }) {
  if (changes.length === 0) return <p class="quiet">Nothing in its context.</p>;
  return (
    <div class="scroll">
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
              <th scope="row">
                {actor === undefined || path === '' ? (
                  path || 'all of it'
                ) : (
                  <a href={address(`/actors/${actor}`, { value: path })} title="Who changed it">
                    {path}
                  </a>
                )}
              </th>
              <td>
                {from === undefined ? <span class="quiet">nothing</span> : <code>{brief(from, 300)}</code>}
              </td>
              <td>{to === undefined ? <span class="quiet">nothing</span> : <code>{brief(to, 300)}</code>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
