import type { DocumentEventOf } from '../catalog/document.ts';

/** Events of the kind `secret`. They hold references of the values, never a value (fleet-and-networks.md §1.9). */
export type SecretEvent = DocumentEventOf<
  'SecretDeposited',
  'SecretRevised',
  'SecretRemovalRequested',
  'SecretRemoved'
>;
