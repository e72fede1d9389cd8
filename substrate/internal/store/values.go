package store

import (
	"github.com/dgraph-io/badger/v4"
)

// classValue is the class of the values that guests store. They belong to a tenant and to no topic: a topic's length of
// zero, which no topic has, stands in its place.
const classValue = 'V'

// Bucket is the key prefix of one bucket of a tenant: every key of a value is made from it.
//
//	len tenant | tenant | 0 | 'V' | len bucket | bucket | key
type Bucket struct{ prefix []byte }

// BucketOf returns the prefix of a bucket. Names are 1 to 255 bytes; the log validates them before.
func BucketOf(tenant, bucket string) Bucket {
	p := make([]byte, 0, len(tenant)+len(bucket)+4)
	p = append(p, byte(len(tenant)))
	p = append(p, tenant...)
	p = append(p, 0, classValue, byte(len(bucket)))
	return Bucket{append(p, bucket...)}
}

// Value returns the key under which the bucket keeps the value of key.
func (b Bucket) Value(key string) []byte { return append(b.Values(), key...) }

// Values returns the prefix of the bucket's values, which nothing else shares.
func (b Bucket) Values() []byte { return b.prefix[:len(b.prefix):len(b.prefix)] }

// Name returns the key of which k is where its value is kept.
func (b Bucket) Name(k []byte) string { return string(k[len(b.prefix):]) }

// tenantEnd returns the first key after those of a tenant that belong to no topic, if key is one of them, else nil.
func tenantEnd(key []byte) []byte {
	tenant, rest, ok := cutString(key)
	if !ok || tenant == "" || len(rest) < 2 || rest[0] != 0 || rest[1] == endClass {
		return nil
	}
	n := len(key) - len(rest)
	return append(key[:n:n], 0, endClass)
}

// parseBucket returns whose bucket the value under key is in, or ok = false if key is not one of a value.
func parseBucket(key []byte) (tenant, bucket string, ok bool) {
	tenant, rest, ok := cutString(key)
	if !ok || tenant == "" || len(rest) < 2 || rest[0] != 0 || rest[1] != classValue {
		return "", "", false
	}
	bucket, rest, ok = cutString(rest[2:])
	return tenant, bucket, ok && bucket != "" && len(rest) > 0
}

// Buckets calls yield for each bucket that holds a value, in order, hopping over everything else.
func (s *Store) Buckets(yield func(tenant, bucket string) error) error {
	return s.view(func(txn *badger.Txn) error {
		o := badger.DefaultIteratorOptions
		o.PrefetchValues = false // as for Scan
		it := txn.NewIterator(o)
		defer it.Close()
		for it.Seek([]byte{metaTenant + 1}); it.Valid(); {
			key := it.Item().KeyCopy(nil)
			tenant, rest, ok := cutString(key)
			if !ok {
				return &CorruptError{Key: key, Reason: "the key is not one of a tenant"}
			}
			n := len(key) - len(rest)
			of := key[:n:n]
			if next := append(of, 0, classValue); string(key) < string(next) {
				it.Seek(next)
				continue
			}
			if len(rest) == 0 || rest[0] != 0 { // a topic: on to the next tenant
				it.Seek(after(of))
				continue
			}
			_, bucket, ok := parseBucket(key)
			if !ok {
				return &CorruptError{Key: key, Reason: "the key is not one of a value"}
			}
			if err := yield(tenant, bucket); err != nil {
				return err
			}
			it.Seek(after(BucketOf(tenant, bucket).prefix))
		}
		return nil
	})
}

// after returns the first key after all that begin with prefix, which has a byte that is not 0xff.
func after(prefix []byte) []byte {
	for n := len(prefix); n > 0; n-- {
		if prefix[n-1] != 0xff {
			next := append([]byte(nil), prefix[:n]...)
			next[n-1]++
			return next
		}
	}
	return nil
}
