import type { LogRecord } from '../../../core/kernel/log/record.ts';
import type { RouteChange, RoutesContext, RoutesEvent } from '../../../machines/gateway/routes.ts';

/** A record of the route table in an operator's words, for `holdfast log`. */
export function describeRoutesRecord({ event: recorded, to }: LogRecord): string | undefined {
  const event = recorded as unknown as RoutesEvent;
  const context = to.context as Partial<RoutesContext> | undefined;
  switch (event.type) {
    case 'LOADED': {
      const rejected = event.rejected?.length ?? 0;
      const what = context?.changes ? changesText(context.changes) : 'nothing changed';
      return `routes read (${event.origin}): ${what}${rejected > 0 ? `; ${rejected} rejected` : ''}`;
    }
    case 'REFUSED':
      return `configuration refused: ${event.reason}`;
    case 'ROLLBACK':
      return context?.changes ? `rolled back: ${event.route}` : `no rollback of ${event.route}`;
    case 'SERVED':
      return '';
    default:
      return undefined;
  }
}

/** `library_docs changed (url)`, at most three of them. */
export function changesText(changes: readonly RouteChange[]): string {
  const texts = changes.slice(0, 3).map(({ name, what, parts }) => {
    const which = parts && parts.length > 0 ? ` (${parts.join(', ')})` : '';
    return `${name} ${what.replace('_', ' ')}${which}`;
  });
  const more = changes.length - texts.length;
  return texts.length === 0 ? 'nothing changed' : `${texts.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
