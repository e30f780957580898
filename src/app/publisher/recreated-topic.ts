/**
 * The topic holds nothing, although a part of the log was sent to it: it was made anew, or these are other brokers. What was
 * sent elsewhere is not here, so that it has to be filled from the beginning of the log.
 */
export class TopicIsNew extends Error {
  override readonly name = 'TopicIsNew';
  constructor(topic: string) {
    super(
      `topic ${topic} is empty or was recreated, although it was published to; filling it from the beginning of the log`,
    );
  }
}
