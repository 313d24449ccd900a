import { Component, type ReactNode } from "react";
import { Button, Note, Page } from "../ui/parts";

interface Props {
  /** Where the user is: going elsewhere leaves the mistake behind. */
  place: string;
  children: ReactNode;
}

/** Keeps a mistake in one page from taking the others with it. */
export class Boundary extends Component<Props, { error: Error | null }> {
  override state = { error: null as Error | null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override componentDidUpdate(before: Props) {
    if (this.state.error && before.place !== this.props.place) this.setState({ error: null });
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <Page title="This page cannot be shown">
        <Note kind="error">{error.message}</Note>
        <p>
          <Button onClick={() => this.setState({ error: null })}>Try again</Button>
        </p>
      </Page>
    );
  }
}
