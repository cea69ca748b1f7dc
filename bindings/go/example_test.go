package aerie_test

import (
	"context"
	"fmt"
	"io"
	"log"

	"aerie"
)

const demo = "../../samples/models/demo.aerie"

func open() (*aerie.Runtime, *aerie.Model, *aerie.Tokenizer) {
	rt, err := aerie.NewRuntime(nil)
	if err != nil {
		log.Fatal(err)
	}
	model, err := aerie.OpenModel(context.Background(), rt, demo, nil)
	if err != nil {
		log.Fatal(err)
	}
	tokenizer, err := model.Tokenizer()
	if err != nil {
		log.Fatal(err)
	}
	return rt, model, tokenizer
}

// Text as it comes, with an EAGLE head guessing ahead.
func Example() {
	rt, model, tokenizer := open()
	defer rt.Close()
	defer model.Close()
	defer tokenizer.Close()
	if err := rt.LoadPlugins(""); err != nil {
		log.Fatal(err)
	}
	drafter, err := model.OpenDrafter(context.Background(), aerie.DrafterOptions{Package: "../../samples/models/demo-eagle.aerie"})
	if err != nil {
		log.Fatal(err)
	}
	defer drafter.Close()
	session, err := model.NewSession(&aerie.SessionOptions{Drafter: drafter})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	prompt, err := tokenizer.Encode("The old man", aerie.EncodeOptions{})
	if err != nil {
		log.Fatal(err)
	}
	if err := session.Append(prompt...); err != nil {
		log.Fatal(err)
	}
	text, err := session.Reader(context.Background(), tokenizer, 12)
	if err != nil {
		log.Fatal(err)
	}
	defer text.Close()
	all, err := io.ReadAll(text) // or io.Copy(os.Stdout, text)
	fmt.Printf("%q %v\n", all, err)
	// Output: ", who had been in the house, and had been in" <nil>
}

// A context ends a step; the session goes on where it was.
func ExampleSession_Step() {
	rt, model, tokenizer := open()
	defer rt.Close()
	defer model.Close()
	defer tokenizer.Close()
	session, err := model.NewSession(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	if err := session.Append(260, 513, 1021, 88); err != nil {
		log.Fatal(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = session.Step(ended, aerie.StepOptions{})
	fmt.Println(err)
	step, err := session.Step(context.Background(), aerie.StepOptions{MaxTokens: 1})
	fmt.Println(len(step.Tokens), err)
	// Output:
	// aerie: cancelled: context canceled
	// 1 <nil>
}

// Many texts at once: one pass of the model reads for all of them.
func ExampleBatch() {
	rt, model, tokenizer := open()
	defer rt.Close()
	defer model.Close()
	defer tokenizer.Close()
	batch, err := model.NewBatch(aerie.BatchOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer batch.Close()
	sessions := make([]*aerie.Session, 3)
	for i := range sessions {
		sessions[i], err = model.NewSession(&aerie.SessionOptions{Sampling: aerie.Sampling{Temperature: 0.7, Seed: uint64(i)}, IgnoreEOS: true})
		if err != nil {
			log.Fatal(err)
		}
		defer sessions[i].Close()
		if err := sessions[i].Append(260, 513, 1021, 88); err != nil {
			log.Fatal(err)
		}
		if err := batch.Add(sessions[i]); err != nil {
			log.Fatal(err)
		}
	}
	tokens := 0
	for tokens < 30 {
		if _, err := batch.Step(context.Background(), aerie.StepOptions{}); err != nil {
			log.Fatal(err)
		}
		for _, session := range sessions {
			step, err := session.Result()
			if err != nil {
				log.Fatal(err)
			}
			tokens += len(step.Tokens)
		}
	}
	fmt.Println(tokens)
	// Output: 30
}
