import type { z } from 'zod';
import type { EventOf } from '../schemas.ts';
import * as shapes from './event-types.ts';

/** Types of the events of the audit context and of what they hold, from their schemas in event-types.ts. */
export type RefusalEvent = EventOf<typeof shapes.REFUSALS>;
export type AuditAccessEvent = EventOf<typeof shapes.ACCESS>;
export type AuditNoticeEvent = EventOf<typeof shapes.NOTICES>;
export type OperatorActEvent = EventOf<typeof shapes.OPERATOR>;
export type AuditExportEvent = EventOf<typeof shapes.EXPORTS>;
export type RetentionEvent = EventOf<typeof shapes.RETENTION>;
export type AuditGrantEvent = EventOf<typeof shapes.GRANTS>;
export type AuditGrantNoticeEvent = EventOf<typeof shapes.GRANT_NOTICES>;

export type AuditEvent =
  | RefusalEvent
  | AuditAccessEvent
  | AuditNoticeEvent
  | OperatorActEvent
  | AuditExportEvent
  | RetentionEvent
  | AuditGrantEvent
  | AuditGrantNoticeEvent;

export type Asked = z.infer<typeof shapes.asked>;
export type ExportRequest = z.infer<typeof shapes.exportRequest>;
export type HoldScope = z.infer<typeof shapes.holdScope>;

export const ACCESS_ASKED = Object.keys(shapes.asked.shape) as (keyof Asked)[];

/** Whether events of a type are only there to tell a tenant what others did with its history. */
export const isNotice = (type: string): boolean =>
  Object.hasOwn(shapes.NOTICES, type) || Object.hasOwn(shapes.GRANT_NOTICES, type);
