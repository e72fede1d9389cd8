package cli

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// getFlags say of which host, and of whom.
type getFlags struct {
	deployFlags
	name string // "" is all
}

// getter reads the objects of one kind.
type getter func(ctx context.Context, a *client.Admin, f getFlags) (result, error)

// getters are the kinds of objects that get shows.
func getters() map[string]getter {
	return map[string]getter{
		"consumers": getConsumers, "topics": getTopics, "groups": getGroups, "tenants": getTenants, "plan": getPlan,
	}
}

func (c *command) getCommand() *cobra.Command {
	kinds := strings.Join(slices.Sorted(maps.Keys(getters())), "|")
	var f getFlags
	cmd := &cobra.Command{
		Use: "get " + kinds + " [NAME]", Short: "Show what there is on a host: consumers, topics, groups, tenants, or the plan",
		Long: `Show objects of a host, all or those with a name. NAME is that of a consumer, topic, group or tenant; of the plan it is the
tenant's. Whoever asks with a token sees the token's tenant alone.`,
		Args:      cobra.RangeArgs(1, 2),
		ValidArgs: slices.Sorted(maps.Keys(getters())),
		RunE: func(cmd *cobra.Command, args []string) error {
			get, known := getters()[args[0]]
			if !known {
				return usage(fmt.Errorf("there is no kind %q: want one of %s", args[0], strings.ReplaceAll(kinds, "|", ", ")))
			}
			if len(args) == 2 {
				f.name = args[1]
			}
			admin, err := c.deployAdmin(&f.deployFlags)
			if err != nil {
				return err
			}
			r, err := get(cmd.Context(), admin, f)
			if err == nil && f.name != "" && len(r.names) == 0 {
				err = &wire.Problem{Status: http.StatusNotFound, Title: "Not Found", Code: wire.CodeNotFound, Detail: "not found: " + f.name}
			}
			if err != nil {
				return fmt.Errorf("get %s: %w", args[0], err)
			}
			return c.print(r)
		},
	}
	f.add(cmd, "", "only this tenant's (default: all that you may see)")
	return cmd
}

// wanted reports whether an object of a tenant is among those that are asked for.
func (f *getFlags) wanted(tenant, name string) bool {
	return (f.tenant == "" || f.tenant == tenant) && (f.name == "" || f.name == name)
}

func getConsumers(ctx context.Context, a *client.Admin, f getFlags) (result, error) {
	all, err := a.Consumers(ctx)
	list := wire.ConsumerList{Consumers: []wire.Consumer{}}
	r := result{head: []string{"TENANT", "CONSUMER", "TOPIC", "LANE", "STATE", "IN FLIGHT", "VERSION", "MODULE", "REASON"}}
	for _, k := range all {
		if f.wanted(k.Tenant, k.Name) {
			list.Consumers = append(list.Consumers, k)
			r.names = append(r.names, k.Name)
			r.rows = append(r.rows, []string{
				k.Tenant, k.Name, k.Topic, laneName(k.Lane), k.State, strconv.Itoa(k.InFlight), k.Version, k.Module[:min(12, len(k.Module))], k.Reason,
			})
		}
	}
	r.value = list
	return r, err
}

func getTopics(ctx context.Context, a *client.Admin, f getFlags) (result, error) {
	all, err := a.Topics(ctx, f.tenant)
	list := []wire.TopicStats{}
	for _, t := range all {
		if f.wanted(t.Tenant, t.Topic) {
			list = append(list, t)
		}
	}
	return topicsResult(list, time.Now()), err
}

// groupOf is a group with whose it is.
type groupOf struct {
	Tenant string `json:"tenant"`
	Topic  string `json:"topic"`
	wire.Group
}

func getGroups(ctx context.Context, a *client.Admin, f getFlags) (result, error) {
	topics, err := a.Topics(ctx, f.tenant)
	list := []groupOf{}
	r := result{head: []string{"TENANT", "TOPIC", "GROUP", "LAG", "IN FLIGHT", "DEAD", "PAUSED", "ORDERING"}}
	for _, t := range topics {
		if t.Groups == 0 || err != nil {
			continue
		}
		var groups []wire.Group
		groups, err = a.Groups(ctx, t.Tenant, t.Topic)
		for _, g := range groups {
			if !f.wanted(t.Tenant, g.Name) {
				continue
			}
			list = append(list, groupOf{t.Tenant, t.Topic, g})
			r.names = append(r.names, g.Name)
			r.rows = append(r.rows, []string{
				t.Tenant, t.Topic, g.Name, strconv.FormatInt(g.Lag, 10), strconv.FormatInt(g.InFlight, 10), strconv.FormatInt(g.DeadLetters, 10),
				yesNo(g.Paused || t.Paused), g.Ordering,
			})
		}
	}
	r.value = map[string]any{"groups": list}
	return r, err
}

func getTenants(ctx context.Context, a *client.Admin, f getFlags) (result, error) {
	all, err := a.Tenants(ctx)
	list := slices.DeleteFunc(all, func(t wire.Tenant) bool { return !f.wanted(t.Name, t.Name) })
	return tenantsResult(list), err
}

// getPlan shows what runs: of all tenants to the operator, of one to who names it.
func getPlan(ctx context.Context, a *client.Admin, f getFlags) (result, error) {
	tenant := f.tenant
	if tenant == "" {
		tenant = f.name
	}
	all, err := a.Deployments(ctx, tenant)
	out := wire.VersionList{Tag: all.Tag, Versions: []wire.Version{}}
	r := result{head: []string{"TENANT", "VERSION", "CONSUMER", "MODULE", "SINCE", "BY", "WHAT"}}
	for _, v := range all.Versions {
		if !v.Runs || !f.wanted(v.Tenant, v.Tenant) {
			continue
		}
		out.Versions = append(out.Versions, v)
		r.names = append(r.names, v.Tenant)
		for _, k := range v.Consumers {
			r.rows = append(r.rows, []string{
				v.Tenant, strconv.Itoa(v.Version), k.Name, k.Module[:min(12, len(k.Module))], strconv.Itoa(k.Since), v.By, v.What,
			})
		}
	}
	r.value = listed(out)
	return r, err
}
