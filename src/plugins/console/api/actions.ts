import { z } from 'zod';
import { consoleActions } from '../../../core/contracts/console.ts';
import { contributedTo, get } from './endpoint.ts';

export const listActions = get({
  path: '/api/actions',
  summary: 'What can be done from the console; each by the operation that its command uses',
  answer: z.object({
    actions: z.array(
      z.object({
        name: z.string(),
        title: z.string(),
        area: z.string(),
        confirm: z.string(),
        fields: z.array(
          z.object({
            name: z.string(),
            title: z.string(),
            kind: z.enum(['text', 'number', 'duration', 'choice']),
            choices: z.array(z.string()).readonly().exactOptional(),
            required: z.boolean(),
          }),
        ),
      }),
    ),
  }),
  async run(_input, request) {
    const actions = request.services ? await contributedTo(consoleActions, request) : [];
    return {
      actions: Array.from(actions, ([name, { value, area }]) => {
        const { title, confirm, fields } = value;
        return { name, title, area, confirm, fields: [...fields] };
      }),
    };
  },
});
