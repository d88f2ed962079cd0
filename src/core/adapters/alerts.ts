import { z } from 'zod';
import { defineTopic, type Topic } from '../../bus/index.ts';

/** An alert as it is raised inside Holdfast; delivery is the work of whoever listens. */
export interface AlertRaised {
  /** Stable id of the condition, e.g. `router.reconciler.gave_up`. */
  name: string;
  severity: 'info' | 'warning' | 'critical';
  /** One sentence for the operator, without secrets. */
  text: string;
  labels: Record<string, string>;
}

/** The effect by which a machine tells a person. */
export const ALERT_RAISE = 'alert.raise';

/** Everything that should reach a person is published here. */
export const alertRaised: Topic<AlertRaised> = defineTopic(
  'alert.raised',
  z.object({
    name: z.string(),
    severity: z.enum(['info', 'warning', 'critical']),
    text: z.string(),
    labels: z.record(z.string(), z.string()),
  }),
  'Something that a person should know of.',
);
