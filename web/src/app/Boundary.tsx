import { Component, type ReactNode } from "react";
import { Button, Note, Page } from "../ui/parts";

/** Keeps a mistake in one page from taking the others with it. */
export class Boundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state = { error: null as Error | null };

  static getDerivedStateFromError(error: Error) {
    return { error };
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
