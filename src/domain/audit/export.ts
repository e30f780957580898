import { reject, type DataOf, type Decider } from '../decider.ts';
import type { AuditExportEvent } from './events.ts';

/** An export of the history: asked for, made in the background, fetched, and its file removed at last. */
export const AUDIT_EXPORT_CATEGORY = 'auditExport';

type Data<Type extends AuditExportEvent['type']> = DataOf<AuditExportEvent, Type>;
export type AuditExportCommand =
  | ({ readonly type: 'RequestAuditExport' } & Data<'AuditExportRequested'>)
  | ({ readonly type: 'CompleteAuditExport' } & Data<'AuditExportCompleted'>)
  | ({ readonly type: 'FailAuditExport' } & Data<'AuditExportFailed'>)
  | ({ readonly type: 'RecordAuditDownload' } & Data<'AuditExportDownloaded'>)
  | ({ readonly type: 'DiscardAuditExport' } & Data<'AuditExportDiscarded'>);

type Asked = Omit<Data<'AuditExportRequested'>, 'at'> & { readonly requestedAt: string };
type Completed = Omit<Data<'AuditExportCompleted'>, 'at'> & { readonly completedAt: string };

export type AuditExportState =
  | { readonly status: 'none' }
  | ({ readonly status: 'running' } & Asked)
  | ({ readonly status: 'complete' } & Completed & Asked)
  | ({ readonly status: 'failed' | 'discarded'; readonly reason: string } & Asked);

export const auditExportDecider: Decider<AuditExportState, AuditExportCommand, AuditExportEvent> = {
  initialState: () => ({ status: 'none' }),
  evolve: (state, event) => {
    if (event.type === 'AuditExportRequested') {
      const { at: requestedAt, subjectId, request } = event.data;
      return { status: 'running', subjectId, request, requestedAt };
    }
    if (state.status === 'none') return state;
    const { subjectId, request, requestedAt } = state;
    const asked = { subjectId, request, requestedAt };
    switch (event.type) {
      case 'AuditExportCompleted': {
        const { at: completedAt, ...result } = event.data;
        return { status: 'complete', ...asked, ...result, completedAt };
      }
      case 'AuditExportFailed':
        return { status: 'failed', ...asked, reason: event.data.reason };
      case 'AuditExportDiscarded':
        return { status: 'discarded', ...asked, reason: event.data.reason };
      default:
        return state;
    }
  },
  decide: (state, command) => {
    if (command.type === 'RequestAuditExport') {
      const { type: _type, ...data } = command;
      return state.status === 'none'
        ? [{ type: 'AuditExportRequested', data }]
        : reject('already-exists', 'EXPORT_EXISTS', 'there is an export with this id already');
    }
    if (state.status === 'none') return reject('not-found', 'EXPORT_NOT_FOUND', 'no export with this id');
    switch (command.type) {
      case 'CompleteAuditExport': {
        const { type: _type, ...data } = command;
        return state.status === 'running' ? [{ type: 'AuditExportCompleted', data }] : [];
      }
      case 'FailAuditExport':
        return state.status === 'running'
          ? [{ type: 'AuditExportFailed', data: { at: command.at, reason: command.reason } }]
          : [];
      case 'DiscardAuditExport':
        return state.status === 'complete' || state.status === 'running'
          ? [{ type: 'AuditExportDiscarded', data: { at: command.at, reason: command.reason } }]
          : [];
      case 'RecordAuditDownload':
        return state.status === 'complete'
          ? [{ type: 'AuditExportDownloaded', data: { at: command.at, subjectId: command.subjectId } }]
          : reject(
              'failed-precondition',
              'EXPORT_NOT_COMPLETE',
              `the export is ${state.status}: it has no file to fetch`,
              { facts: { status: state.status } },
            );
    }
  },
};
